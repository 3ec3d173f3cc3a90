#include "transport/net/ib/nic/events.h"

#include <string>
#include <vector>

#include "support/scoped_log.h"
#include "transport/net/ib/ib_lines.h"
#include "transport/net/ib/ib_pair.h"

namespace tutti::net::ib {
namespace {

using namespace test;

enum class Of : std::uint8_t { Nic, Port, QueuePair };

struct EventCase {
  int event;
  Of of;
  std::string line;  ///< "": none
};
/// All that there are, one of newer libraries, and one that is to come.
const EventCase kEvents[] = {
    {0, Of::Nic, "WARN NET/IB : b0 Got async fatal event: CQ error(0): look at dmesg"},
    {1, Of::QueuePair, "WARN NET/IB : b0 Got async event on queue pair 17: local work queue catastrophic error(1)"},
    {2, Of::QueuePair, "WARN NET/IB : b0 Got async event on queue pair 17: invalid request local work queue error(2)"},
    {3, Of::QueuePair, "WARN NET/IB : b0 Got async event on queue pair 17: local access violation work queue error(3)"},
    {4, Of::QueuePair, ""},
    {5, Of::QueuePair, ""},
    {6, Of::QueuePair, "WARN NET/IB : b0 Got async event on queue pair 17: path migrated(6)"},
    {7, Of::QueuePair, "WARN NET/IB : b0 Got async event on queue pair 17: path migration request error(7)"},
    {8, Of::Nic, "WARN NET/IB : b0 Got async fatal event: local catastrophic error(8): look at dmesg"},
    {9, Of::Port, "WARN NET/IB : b0:1 Got non-fatal async event: port active(9)"},
    {10, Of::Port, "WARN NET/IB : b0:1 Got non-fatal async event: port error(10)"},
    {11, Of::Port, "WARN NET/IB : b0:1 Got non-fatal async event: LID change(11)"},
    {12, Of::Port, "WARN NET/IB : b0:1 Got non-fatal async event: P_Key change(12)"},
    {13, Of::Port, "WARN NET/IB : b0:1 Got non-fatal async event: SM change(13)"},
    {14, Of::Nic, "WARN NET/IB : b0 Got async event: SRQ catastrophic error(14)"},
    {15, Of::Nic, "WARN NET/IB : b0 Got async event: SRQ limit reached(15)"},
    {16, Of::QueuePair, ""},
    {17, Of::Port, "WARN NET/IB : b0:1 Got non-fatal async event: client reregistration(17)"},
    {18, Of::Port, "WARN NET/IB : b0:1 Got non-fatal async event: GID table change(18)"},
    {19, Of::Nic, "WARN NET/IB : b0 Got async event: WQ fatal(19)"},
    {20, Of::Port,
     "INFO NET/IB : b0 Got async event: device speed change(20): channels stay as planned for the speed that it had"},
    {21, Of::Port, "WARN NET/IB : b0 Got async event: unknown(21)"},
};

class IbEvents : public IbPairTest {
 protected:
  static void tell(const EventCase& one) {
    const auto event = static_cast<ibv_event_type>(one.event);
    if (one.of == Of::QueuePair) {
      EXPECT_EQ(tuttiFakeVerbs()->queuePairEvents("b0", event), 1);
    } else {
      tuttiFakeVerbs()->portEvent("b0", event, one.of == Of::Port ? 1 : 0);
    }
  }
  /// The lines of this event: those before the line of one that is sent after it.
  static std::vector<std::string> linesOf(const EventCase& one) {
    const std::string last = "WARN NET/IB : b0:2 Got non-fatal async event: SM change(13)";
    IbLines lines;
    tell(one);
    tuttiFakeVerbs()->portEvent("b0", IBV_EVENT_SM_CHANGE, 2);
    std::vector<std::string> said;
    EXPECT_TRUE(until([&] {
      for (const std::string& line : lines.take()) said.push_back(line);
      return !said.empty() && said.back() == last;
    }));
    if (!said.empty()) said.pop_back();
    return said;
  }
};

TEST_F(IbEvents, AreToldInOneLineEachByTheirWeight) {
  allowLog("b0");
  const ScopedLog log("INFO");
  for (const EventCase& one : kEvents) {
    SCOPED_TRACE(one.event);
    // With each of them anew: some leave a NIC that has failed.
    connect();
    const std::vector<std::string> expected(one.line.empty() ? 0 : 1, one.line);
    EXPECT_EQ(linesOf(one), expected);
    pair.reset();
    a.reset();
    b.reset();
    plug(fourNics());
  }
}

/// What becomes of a connection whose NIC says it.
TEST_F(IbEvents, EndAConnectionOnlyWhereItHasFailed) {
  allowLog("b0");
  for (const EventCase& one : kEvents) {
    SCOPED_TRACE(one.event);
    connect();
    IbBuffer& from = outgoing(100);
    IbBuffer& to = incoming(100);
    void* const received = pair->recv(to.place(100));
    linesOf(one);
    const bool fatal = one.event <= 3 || one.event == 8;
    if (fatal) {
      Status status;
      EXPECT_TRUE(until([&] { return !(status = b->net->test(received, {}).status()).ok(); }));
      EXPECT_EQ(status.code(), ncclSystemError);
    } else {
      pair->finishSend(pair->send(from.place(100)));
      EXPECT_EQ(pair->finishRecv(received), std::vector<int>{100});
    }
    in.clear();
    out.clear();
    pair.reset();
    a.reset();
    b.reset();
    plug(fourNics());
  }
}

}  // namespace
}  // namespace tutti::net::ib
