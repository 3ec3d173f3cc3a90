// What can go wrong with the example plugin switch_collnet: faults that it is told of, calls that are wrong, nodes that
// are not there. Each ends with words that name who is to blame, within a bound.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "nccl_net.h"
#include "plugin/network/switch_nodes.h"
#include "plugin/plugin_fixture.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

constexpr plugin::CollNetReduction kSum{ncclInt32, ncclSum};

/// A failure that the plugin says once, and the library once more with what it has called.
void expectFailure(const char* words) {
  expectLog(words);
  expectLog(words);
}

/// Nobody waits for those who do not come for longer.
struct Impatient {
  ScopedEnv time{"SWITCH_COLLNET_CONNECT_MS", "300"};
};

/// An AllReduce of one number per node: 1.
Result<int> sumOfOnes(SwitchNode& node, int* sum = nullptr) {
  SwitchNode::Area area(node, sizeof(int));
  const int one = 1;
  std::memcpy(area.bytes.data(), &one, sizeof(one));
  auto result = node.allReduce(area.whole(), area.whole(), kSum);
  if (sum != nullptr) std::memcpy(sum, area.bytes.data(), sizeof(*sum));
  return result;
}

class SwitchFault : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Versions, SwitchFault, testing::Values(6, 8, 9, 11, 12),
                         [](const auto& test) { return "V" + std::to_string(test.param); });

// ---- joining

TEST_P(SwitchFault, RefusedConnectLeavesTheOthersWithItsName) {
  const Impatient impatient;
  const SwitchFaults faults("refuse-connect@1");
  SwitchNodes nodes(GetParam(), 3);
  expectFailure("connect: node 1 of 3");
  allowLog("of 3 nodes have not come: node 1");
  EXPECT_FALSE(nodes.connect());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(nodes.at(i).connected.ok()) << i;
  EXPECT_EQ(nodes.at(1).connected.code(), ncclSystemError);
  EXPECT_EQ(nodes.at(0).connected.code(), ncclRemoteError);
  EXPECT_NE(capturedText().find("of 3 nodes have not come: node 1"), std::string::npos);
}

TEST(SwitchCollNetJoin, EndsAtTheDeadlineIfNode0NeverServes) {
  const Impatient impatient;
  const SwitchFaults faults("refuse-connect@0");
  SwitchNodes nodes(12, 2);
  expectFailure("connect: node 0 of 2");
  expectFailure("it has not answered (SWITCH_COLLNET_CONNECT_MS=300)");
  EXPECT_FALSE(nodes.connect());
  EXPECT_EQ(nodes.at(1).connected.code(), ncclRemoteError);
}

TEST_P(SwitchFault, OneNodeMayBeToldThatThereIsNoCollNet) {
  const SwitchFaults faults("no-collnet@0");
  SwitchNodes nodes(GetParam(), 2);
  EXPECT_FALSE(nodes.connect());
  EXPECT_TRUE(nodes.at(0).connected.ok());
  EXPECT_EQ(nodes.at(0).connection, nullptr);
  EXPECT_NE(nodes.at(1).connection, nullptr);
  allowLog("node 0");
  const auto sum = sumOfOnes(nodes.at(1));
  ASSERT_FALSE(sum.ok());
  EXPECT_NE(capturedText().find("has left; node 1"), std::string::npos);
}

TEST_P(SwitchFault, ConnectThatWaitsEndsWhenItsListenerIsClosed) {
  const Impatient impatient;
  const SwitchFaults faults("hang-connect");
  allowLog("connect");
  bool waited = false;
  // On a busy machine the listener may be gone before it is asked for.
  for (std::chrono::milliseconds pause{50}; !waited && pause < std::chrono::seconds(5); pause *= 2) {
    SwitchNodes nodes(GetParam(), 1);
    SwitchNode& node = nodes.at(0);
    std::thread closer([&] {
      std::this_thread::sleep_for(pause);
      EXPECT_TRUE(node.net->closeListen(node.listener).ok());
    });
    EXPECT_FALSE(nodes.connect());
    closer.join();
    node.listener = nullptr;
    waited = capturedText().find("told to wait until it is closed") != std::string::npos;
  }
  EXPECT_TRUE(waited);
}

TEST(SwitchCollNetJoin, EndsAtTheDeadlineWithoutASwitch) {
  const Impatient impatient;
  const ScopedEnv address("SWITCH_COLLNET_ADDRESS", "127.0.0.1:1");
  SwitchNodes nodes(12, 1);
  expectFailure("switch 127.0.0.1:1: Connection refused");
  EXPECT_FALSE(nodes.connect());
  EXPECT_EQ(nodes.at(0).connected.code(), ncclRemoteError);
}

// ---- operations

TEST_P(SwitchFault, NoSupportForOneReduction) {
  const SwitchFaults faults("no-support=float16:sum,no-support=*:prod");
  SwitchNodes nodes(GetParam(), 1);
  ASSERT_TRUE(nodes.connect());
  plugin::CollNet& net = *nodes.at(0).net;
  EXPECT_FALSE(net.reduces({ncclFloat16, ncclSum}).value());
  EXPECT_TRUE(net.reduces({ncclFloat16, ncclMax}).value());
  EXPECT_FALSE(net.reduces({ncclInt8, ncclProd}).value());
  EXPECT_FALSE(net.reduces({ncclInt8, ncclAvg}).value());
  SwitchNode::Area area(nodes.at(0), 4);
  expectFailure("reduceSupport has said no");
  EXPECT_FALSE(nodes.at(0).allReduce(area.whole(), area.whole(), {ncclFloat16, ncclSum}).ok());
}

TEST_P(SwitchFault, RefusesTheFirstCalls) {
  const SwitchFaults faults("null-request=3@1");
  SwitchNodes nodes(GetParam(), 2);
  ASSERT_TRUE(nodes.connect());
  nodes.each([&](SwitchNode& node, int number) {
    SwitchNode::Area area(node, sizeof(int));
    int tries = 0;
    const auto request = node.posted([&] {
      ++tries;
      return node.net->iallreduce(node.connection, area.whole(), area.whole(), kSum);
    });
    EXPECT_EQ(tries, number == 1 ? 4 : 1);
    EXPECT_TRUE(node.finished(request).ok());
  });
}

TEST_P(SwitchFault, LateAnswersComeLate) {
  const SwitchFaults faults("late=80@1");
  SwitchNodes nodes(GetParam(), 2);
  ASSERT_TRUE(nodes.connect());
  nodes.each([&](SwitchNode& node, int number) {
    const auto begin = std::chrono::steady_clock::now();
    int sum = 0;
    EXPECT_TRUE(sumOfOnes(node, &sum).ok());
    EXPECT_EQ(sum, 2);
    EXPECT_TRUE(number == 0 || std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(80));
  });
}

TEST_P(SwitchFault, WrongAnswerIsWrongForOneNodeOnce) {
  const SwitchFaults faults("wrong=2@1");
  SwitchNodes nodes(GetParam(), 2);
  ASSERT_TRUE(nodes.connect());
  nodes.each([&](SwitchNode& node, int number) {
    for (int i = 1; i <= 3; ++i) {
      int sum = 0;
      EXPECT_TRUE(sumOfOnes(node, &sum).ok());
      EXPECT_EQ(sum == 2, number == 0 || i != 2) << i;
    }
  });
}

TEST_P(SwitchFault, AnswerOfAnotherLengthEndsTheConnectionOfItsNode) {
  const SwitchFaults faults("short=2@1");
  SwitchNodes nodes(GetParam(), 2);
  ASSERT_TRUE(nodes.connect());
  allowLog("the switch has answered AllReduce 2 of 4 bytes, int32, sum with 3 bytes instead of 4");
  nodes.each([&](SwitchNode& node, int number) {
    EXPECT_TRUE(sumOfOnes(node).ok());
    EXPECT_EQ(sumOfOnes(node).ok(), number == 0);
  });
  EXPECT_NE(capturedText().find("with 3 bytes instead of 4"), std::string::npos);
}

TEST_P(SwitchFault, LostAnswerNeverComesAndLaterOnesDo) {
  const ScopedEnv time("SWITCH_COLLNET_OPERATION_MS", "400");
  const SwitchFaults faults("lost=1@0");
  SwitchNodes nodes(GetParam(), 2);
  ASSERT_TRUE(nodes.connect());
  allowLog("AllReduce 1 of 4 bytes, int32, sum has had no answer for 400 ms");
  nodes.each([&](SwitchNode& node, int number) {
    SwitchNode::Area area(node, 8);
    const auto post = [&](std::size_t at) {
      return node.net->iallreduce(node.connection, area.part(at, 4), area.part(at, 4), kSum);
    };
    const auto first = post(0);
    const auto second = post(4);
    EXPECT_TRUE(node.finished(second).ok());
    EXPECT_EQ(node.finished(first).ok(), number == 1);
  });
}

TEST_P(SwitchFault, ErrorOfACallIsThatOfItsNodeAndTheOthersHearOfIt) {
  for (const char* fault : {"post-error=2@1", "test-error=2@1"}) {
    const SwitchFaults faults(fault);
    SwitchNodes nodes(GetParam(), 3);
    ASSERT_TRUE(nodes.connect());
    allowLog("told to fail");
    allowLog("the switch says: node 1");
    nodes.each([&](SwitchNode& node, int number) {
      EXPECT_TRUE(sumOfOnes(node).ok()) << fault;
      const bool ok = sumOfOnes(node).ok();
      if (number == 1) {
        EXPECT_FALSE(ok) << fault;
        EXPECT_TRUE(node.net->close(node.connection).ok());
        node.connection = nullptr;
      } else {
        EXPECT_FALSE(ok && sumOfOnes(node).ok()) << fault;
      }
    });
  }
}

TEST_P(SwitchFault, DyingSwitchEndsAllGroups) {
  const SwitchFaults faults("die=2");
  SwitchNodes nodes(GetParam(), 2);
  ASSERT_TRUE(nodes.connect());
  allowLog("the connection was closed by the other side");
  allowLog("Connection reset by peer");
  nodes.each([&](SwitchNode& node, int) {
    EXPECT_TRUE(sumOfOnes(node).ok());
    EXPECT_TRUE(sumOfOnes(node).ok());
    EXPECT_EQ(sumOfOnes(node).status().code(), ncclRemoteError);
  });
}

TEST_P(SwitchFault, RefusesRegistrations) {
  const SwitchFaults faults("refuse-register=2");
  SwitchNodes nodes(GetParam(), 1);
  ASSERT_TRUE(nodes.connect());
  SwitchNode& node = nodes.at(0);
  const SwitchNode::Area first(node, 8);
  char more = 0;
  expectFailure("regMr: node 0 of 1, device switch0");
  EXPECT_FALSE(node.net->registerMemory(node.connection, &more, 1, plugin::PtrKind::Host).ok());
}

TEST_P(SwitchFault, CallsThatKnowNoNodeFailForTheWholeProcess) {
  SwitchNodes nodes(GetParam(), 1);
  plugin::CollNet& net = *nodes.at(0).net;
  plugin::NetHandle handle{};
  const SwitchFaults faults("refuse-init,refuse-devices,refuse-properties,refuse-listen,refuse-support");
  for (const char* const call : {"init", "devices", "getProperties", "listen", "reduceSupport"}) {
    allowLog(std::string(call) + ": told to refuse");
    allowLog(std::string(call) + " failed with ncclSystemError");
  }
  EXPECT_EQ(net.devices().status().code(), ncclSystemError);
  EXPECT_EQ(net.properties(0).status().code(), ncclSystemError);
  EXPECT_EQ(net.listen(0, handle).status().code(), ncclSystemError);
  EXPECT_EQ(net.reduces(kSum).status().code(), ncclSystemError);
  const bool begins = nodes.attempt() != nullptr;
  EXPECT_TRUE(GetParam() < 11 || !begins) << "older versions are not begun again";
}

TEST_P(SwitchFault, CloseThatFailsHasClosed) {
  SwitchNodes nodes(GetParam(), 1);
  ASSERT_TRUE(nodes.connect());
  const SwitchFaults faults("refuse-close");
  expectFailure("closeColl: told to refuse");
  SwitchNode& node = nodes.at(0);
  EXPECT_EQ(node.net->close(std::exchange(node.connection, nullptr)).code(), ncclSystemError);
}

TEST(SwitchFaultList, LeavesOutWindowCalls) {
  const SwitchFaults faults("no-allgather,no-reducescatter");
  SwitchNodes nodes(12, 1);
  EXPECT_FALSE(nodes.at(0).net->gathers());
  EXPECT_FALSE(nodes.at(0).net->scatters());
}

TEST(SwitchFaultList, WithASlipOfThePenMakesInitFail) {
  struct Case {
    const char* list;
    const char* words;
  };
  for (const Case& c :
       {Case{"nul-request=3", "'nul-request=3' is no fault"}, Case{"late", "'late' needs a number, as in late=3"},
        Case{"late=5@x", "'late=5@x' has a node that is no number"},
        Case{"die=1@2", "'die=1@2' concerns a whole process"},
        Case{"hang-connect=2", "'hang-connect=2' takes no value"},
        Case{"no-support=half:sum", "'no-support=half:sum' needs a type and an operation"}}) {
    const SwitchFaults faults(c.list);
    expectLog(c.words);
    const DlLibrary library = DlLibrary::open(switchPath(12));
    const auto source = plugin::findCollNet(library, switchPath(12));
    const auto attempt = source->attempt({});
    EXPECT_EQ(attempt.net, nullptr);
    EXPECT_NE(attempt.why.find(c.words), std::string::npos) << attempt.why;
  }
}

// ---- nodes that are not there, or want something else

TEST_P(SwitchFault, NodeThatGivesUpEndsTheGroupByName) {
  SwitchNodes nodes(GetParam(), 3);
  ASSERT_TRUE(nodes.connect());
  allowLog("the switch says: node 2");
  nodes.each([&](SwitchNode& node, int number) {
    EXPECT_TRUE(sumOfOnes(node).ok());
    if (number == 2) {
      // With an operation under way: that is no goodbye.
      SwitchNode::Area area(node, sizeof(int));
      EXPECT_TRUE(node.net->iallreduce(node.connection, area.whole(), area.whole(), kSum).ok());
    }
  });
  EXPECT_TRUE(nodes.at(2).net->close(nodes.at(2).connection).ok());
  nodes.at(2).connection = nullptr;
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(sumOfOnes(nodes.at(i)).ok());
    const std::string text = lastErrorText();
    EXPECT_NE(text.find("node 2"), std::string::npos) << text;
    EXPECT_NE(text.find("is gone without a word after 1 operations"), std::string::npos) << text;
  }
}

TEST_P(SwitchFault, NodeThatLeavesInPeaceIsMissedOnlyByWhoStillWantsIt) {
  SwitchNodes nodes(GetParam(), 2);
  ASSERT_TRUE(nodes.connect());
  nodes.each([&](SwitchNode& node, int) { EXPECT_TRUE(sumOfOnes(node).ok()); });
  EXPECT_TRUE(nodes.at(0).net->close(nodes.at(0).connection).ok());
  nodes.at(0).connection = nullptr;
  expectFailure("has left; node 1");
  EXPECT_FALSE(sumOfOnes(nodes.at(1)).ok());
}

TEST_P(SwitchFault, NodesThatDisagreeAreNamedWithWhatTheyWant) {
  SwitchNodes nodes(GetParam(), 3);
  ASSERT_TRUE(nodes.connect());
  allowLog("the nodes do not call the same: node 0");
  nodes.each([&](SwitchNode& node, int number) {
    SwitchNode::Area area(node, 8);
    const std::size_t bytes = number == 2 ? 8 : 4;
    EXPECT_FALSE(node.allReduce(area.part(0, bytes), area.part(0, bytes), kSum).ok());
  });
  const std::string text = capturedText();
  EXPECT_NE(text.find("calls AllReduce 1 of 4 bytes, int32, sum, but node 2"), std::string::npos) << text;
  EXPECT_NE(text.find("calls AllReduce 1 of 8 bytes, int32, sum"), std::string::npos) << text;
  EXPECT_EQ(text.find("but node 1"), std::string::npos) << text;
}

TEST_P(SwitchFault, OperationWaitsForTheLastNodeOnlySoLong) {
  const ScopedEnv time("SWITCH_COLLNET_OPERATION_MS", "300");
  SwitchNodes nodes(GetParam(), 2);
  ASSERT_TRUE(nodes.connect());
  // Either end may look at its clock first.
  allowLog("AllReduce 1 of 4 bytes, int32, sum has waited too long for node 1");
  allowLog("AllReduce 1 of 4 bytes, int32, sum has had no answer for 300 ms");
  EXPECT_FALSE(sumOfOnes(nodes.at(0)).ok());
}

// ---- misuse

TEST_P(SwitchFault, MisuseIsNoticed) {
  const SwitchFaults faults("");
  const ScopedEnv most("SWITCH_COLLNET_MAX_COLL_BYTES", "64");
  SwitchNodes nodes(GetParam(), 1);
  ASSERT_TRUE(nodes.connect());
  SwitchNode& node = nodes.at(0);
  SwitchNode::Area area(node, 128);
  const auto reduce = [&](plugin::CollNetBuffer send, plugin::CollNetBuffer recv) {
    return node.net->iallreduce(node.connection, send, recv, kSum).ok();
  };
  expectFailure("nothing is to be moved");
  EXPECT_FALSE(reduce(area.part(0, 0), area.part(0, 0)));
  expectFailure("it is longer than maxCollBytes, which is 64");
  EXPECT_FALSE(reduce(area.whole(), area.whole()));
  expectFailure("the sent memory is not inside what was registered under its handle");
  EXPECT_FALSE(reduce(area.part(100, 32), area.part(0, 32)));
  expectFailure("the received memory is not registered with this connection");
  EXPECT_FALSE(reduce(area.part(0, 4), {area.bytes.data(), 4, nullptr}));
  expectFailure("no memory has been registered under that handle");
  EXPECT_FALSE(node.net->deregisterMemory(node.connection, &node).ok());
  expectFailure("memory of kind 2 is not in ptrSupport");
  EXPECT_FALSE(node.net->registerMemory(node.connection, area.bytes.data(), 1, plugin::PtrKind::Cuda).ok());
  const auto request = node.net->iallreduce(node.connection, area.part(0, 4), area.part(0, 4), kSum);
  EXPECT_TRUE(node.finished(request).ok());
  expectFailure("the request is not under way");
  EXPECT_FALSE(node.net->test(request.value(), nullptr).ok());
}

TEST(SwitchMisuse, OfAWindowIsNoticed) {
  const SwitchFaults faults("");
  SwitchNodes nodes(12, 1);
  ASSERT_TRUE(nodes.connect());
  SwitchNode& node = nodes.at(0);
  SwitchNode::Area area(node, 64);
  expectFailure("the window leaves the 32 bytes that all nodes have");
  EXPECT_FALSE(node.net->iallgather(node.connection, area.part(0, 8), area.part(0, 16), {32, 24, 16}).ok());
  expectFailure("the part is not as long as the window");
  EXPECT_FALSE(node.net->iallgather(node.connection, area.part(0, 8), area.part(0, 8), {32, 0, 16}).ok());
  expectFailure("an element is cut into two");
  EXPECT_FALSE(
      node.net->ireducescatter(node.connection, area.part(0, 6), area.part(0, 6), {32, 0, 6}, {ncclInt32, ncclSum})
          .ok());
}

TEST(SwitchMisuse, OfPartsIsNoticed) {
  const SwitchFaults faults("");
  SwitchNodes nodes(12, 1);
  ASSERT_TRUE(nodes.connect());
  const DlLibrary library = DlLibrary::open(switchPath(12));
  const auto* const table = static_cast<const ncclCollNet_v12_t*>(library.symbol("ncclCollNetPlugin_v12"));
  std::array<ncclNetSGE_v12_t, 2> parts{};
  void* request = nullptr;
  expectLog("iallgather: there must be one part");
  EXPECT_EQ(table->iallgather(nodes.at(0).connection, nullptr, 2, parts.data(), 8, 0, 8, nullptr, &request),
            ncclInternalError);
  expectLog("ireducescatter: there must be one part");
  EXPECT_EQ(
      table->ireducescatter(nodes.at(0).connection, 0, nullptr, nullptr, 8, 0, 8, ncclInt8, ncclSum, nullptr, &request),
      ncclInternalError);
}

TEST(SwitchMisuse, OfWhatWasClosedIsNoticed) {
  const SwitchFaults faults("");
  SwitchNodes nodes(12, 1);
  ASSERT_TRUE(nodes.connect());
  SwitchNode& node = nodes.at(0);
  char byte = 0;
  void* const registration = node.net->registerMemory(node.connection, &byte, 1, plugin::PtrKind::Host).value();
  void* const request =
      node.net->iallreduce(node.connection, {&byte, 1, registration}, {&byte, 1, registration}, {ncclInt8, ncclSum})
          .value();
  expectFailure("closeColl: 1 registrations were not given back");
  EXPECT_FALSE(node.net->close(node.connection).ok());
  expectFailure("iallreduce: that is no connection, or it was closed");
  EXPECT_FALSE(node.net->iallreduce(node.connection, {&byte, 1}, {&byte, 1}, {ncclInt8, ncclSum}).ok());
  expectFailure("test: that is no request of a connection, or it was closed");
  EXPECT_FALSE(node.net->test(request, nullptr).ok());
  expectFailure("closeColl: that is no connection, or it was closed");
  EXPECT_FALSE(node.net->close(node.connection).ok());
  node.connection = nullptr;
}

TEST(SwitchMisuse, FinalizeWithSomethingOpenIsNoticed) {
  const SwitchFaults faults("");
  SwitchNodes nodes(12, 1);
  expectFailure("finalize: still open: 1 listeners, 0 connections, 0 registrations");
  nodes.at(0).net.reset();
  nodes.at(0).net = nodes.attempt();
}

TEST(SwitchMisuseDeathTest, EndsTheProcessUnlessItIsToldOtherwise) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        SwitchNodes nodes(12, 1);
        nodes.connect();
        char byte = 0;
        static_cast<void>(
            nodes.at(0).net->iallreduce(nodes.at(0).connection, {&byte, 1}, {&byte, 1}, {ncclInt8, ncclSum}));
      },
      "switch_collnet: iallreduce: node 0 of 1, .*the sent memory is not registered with this connection");
}

}  // namespace
}  // namespace tutti::test
