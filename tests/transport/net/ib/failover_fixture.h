// A connection over several ports of either side, and what is said of those that fail.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "support/log_capture.h"
#include "transport/net/ib/ib_flow.h"

namespace tutti::test {

/// a0 to a3 of one host, b0 to b3 of the other.
inline std::vector<FakeNic> eightNics() {
  std::vector<FakeNic> nics;
  for (int i = 0; i < 4; ++i) {
    nics.push_back(roceNic("a" + std::to_string(i), 1 + i));
    nics.push_back(roceNic("b" + std::to_string(i), 11 + i));
  }
  return nics;
}

inline bool logged(std::string_view part) {
  return capturedText().find(part) != std::string::npos;
}

class IbFailover : public IbPairTest {
 protected:
  void SetUp() override {
    plug(eightNics());
    allowLog("Got non-fatal async event");
  }
  static Params with(int queuePairs = 1, bool splits = false) {
    Params params = verbsParams();
    params.ib.queuePairs = queuePairs;
    params.ib.splitData = splits;
    params.ib.portRecovery = false;
    return params;
  }
  /// The same, and takes ports back soon.
  static Params returning(int queuePairs = 1, bool splits = false) {
    Params params = with(queuePairs, splits);
    params.ib.portRecovery = true;
    params.ib.recoveryStartDelayMs = 1;
    return params;
  }
  /// Fused from so many NICs on either side.
  void fuse(const Params& sending, const Params& receiving, int sends = 2, int recvs = 2) {
    pair.reset();
    a = std::make_unique<IbSide>("a", *sysfs, sending);
    b = std::make_unique<IbSide>("b", *sysfs, receiving);
    pair = std::make_unique<IbPair>(*a->net, sends > 1 ? a->fused(sends) : 0, *b->net, recvs > 1 ? b->fused(recvs) : 0);
  }
  void fuse(const Params& params = with(), int nics = 2) { fuse(params, params, nics, nics); }
  /// Nothing of what was before is there any more.
  void plugAgain() {
    pair.reset();
    a.reset();
    b.reset();
    tuttiFakeVerbs()->hold(false);
    EXPECT_EQ(tuttiFakeVerbs()->faults(), std::vector<std::string>());
    plug(eightNics());
  }
  static void up(const std::string& nic) { tuttiFakeVerbs()->portEvent(nic, IBV_EVENT_PORT_ACTIVE, 1); }
  static void down(const std::string& nic) { tuttiFakeVerbs()->portEvent(nic, IBV_EVENT_PORT_ERR, 1); }
  /// Both ends have said what they do without.
  static bool bothSaid(std::string_view part) {
    const std::string text = capturedText();
    const std::size_t first = text.find(part);
    return first != std::string::npos && text.find(part, first + part.size()) != std::string::npos;
  }
  /// Until both have, with what is under way.
  static void runUntilBothSaid(IbFlow& flow, std::string_view part) {
    EXPECT_TRUE(until([&] { return !flow.turn() || bothSaid(part); })) << part;
    EXPECT_TRUE(flow.failure().ok());
  }
  /// Numbers of queue pairs that have announced something since `before`, of one NIC.
  static std::size_t announced(const std::string& nic, std::size_t before) {
    const auto work = tuttiFakeVerbs()->work();
    return static_cast<std::size_t>(
        std::count_if(work.begin() + static_cast<std::ptrdiff_t>(before), work.end(),
                      [&](const FakeWork& one) { return one.nic == nic && one.opcode == IBV_WR_RDMA_WRITE_WITH_IMM; }));
  }
};

}  // namespace tutti::test
