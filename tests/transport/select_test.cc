#include "transport/select.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

enum class Answer { Yes, No, Error };

class FakeTransport : public Transport {
 public:
  FakeTransport(std::string name, Answer answer) : name_(std::move(name)), answer_(answer) {}
  std::string_view name() const override { return name_; }
  Result<bool> reachable(const PeerInfo&, const PeerInfo&) const override {
    if (answer_ == Answer::Error) return fail(ncclUnhandledCudaError, "the driver is broken");
    return answer_ == Answer::Yes;
  }
  std::string whyNot(const PeerInfo&, const PeerInfo&) const override { return name_ + " has its reasons"; }
  Result<std::unique_ptr<Endpoint>> openSend(const LinkSpec&) override { return Status(ncclInternalError); }
  Result<std::unique_ptr<Endpoint>> openRecv(const LinkSpec&) override { return Status(ncclInternalError); }

 private:
  std::string name_;
  Answer answer_;
};

PeerInfo rankOn(int rank, const char* host) {
  PeerInfo info;
  info.rank = rank;
  info.busId = 0x1b000;
  std::snprintf(info.hostName.data(), info.hostName.size(), "%s", host);
  return info;
}

std::vector<std::unique_ptr<Transport>> listOf(Answer first, Answer second) {
  std::vector<std::unique_ptr<Transport>> list;
  list.push_back(std::make_unique<FakeTransport>("P2P", first));
  list.push_back(std::make_unique<FakeTransport>("SHM", second));
  return list;
}

TEST(PickTransport, TakesTheFirstThatReaches) {
  const auto both = listOf(Answer::Yes, Answer::Yes);
  EXPECT_EQ(pickTransport(both, rankOn(0, "a"), rankOn(1, "a")).value(), both[0].get());
  const auto second = listOf(Answer::No, Answer::Yes);
  EXPECT_EQ(pickTransport(second, rankOn(0, "a"), rankOn(1, "a")).value(), second[1].get());
}

TEST(PickTransport, NoneGivesEveryReason) {
  expectLog(
      "No transport found for rank 0[1b000] -> rank 1[1b000] (hosts a and b): P2P: P2P has its reasons; SHM: SHM has "
      "its reasons");
  EXPECT_EQ(pickTransport(listOf(Answer::No, Answer::No), rankOn(0, "a"), rankOn(1, "b")).status().code(),
            ncclSystemError);
}

TEST(PickTransport, EmptyListIsSaid) {
  expectLog("no transport is enabled");
  EXPECT_EQ(pickTransport({}, rankOn(0, "a"), rankOn(1, "b")).status().code(), ncclSystemError);
}

TEST(PickTransport, ErrorOfATransportIsPassedOn) {
  expectLog("the driver is broken");
  EXPECT_EQ(pickTransport(listOf(Answer::Error, Answer::Yes), rankOn(0, "a"), rankOn(1, "a")).status().code(),
            ncclUnhandledCudaError);
}

}  // namespace
}  // namespace tutti::test
