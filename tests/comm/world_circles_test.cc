// Communicators that ranks use in different order wait for each other in a circle: reports of stalls say so, and only
// then.
#include <atomic>
#include <cstdlib>
#include <functional>
#include <regex>

#include "comm/stalled.h"
#include "comm/world.h"
#include "gpu/event.h"

namespace tutti::comm {
namespace {

using test::askOwnProcess;
using test::awaitLog;
using test::countOf;

constexpr std::size_t kCount = 1 << 16;
constexpr const char* kRemedy =
    "Call the communicators in the same order on all ranks, or on streams that do not wait for each other";

void stallAfter(const char* seconds) {
  test::stallAfter(seconds);
  test::allowLog("Stall: ");
  test::allowLog("aborted its communicator");
}

/// One rank of some communicators, a device, two streams and a buffer.
struct Party {
  Party(int number, const test::Ints& memory)
      : place(number),
        gpu(test::device(number)),
        first(gpu::Stream::create(gpu).value()),
        second(gpu::Stream::create(gpu).value()),
        data(memory) {}
  int place;
  const gpu::Device& gpu;
  gpu::Stream first;
  gpu::Stream second;
  const test::Ints& data;

  void allReduce(ncclComm_t comm, CUstream stream) const {
    EXPECT_EQ(ncclAllReduce(data.at(), data.at(), kCount, ncclInt32, ncclSum, comm, stream), ncclSuccess);
  }
  void allReduce(ncclComm_t comm) const { allReduce(comm, first.get()); }
  void sync() const {
    EXPECT_TRUE(gpu::waitStream(gpu, first.get(), nullptr).ok());
    EXPECT_TRUE(gpu::waitStream(gpu, second.get(), nullptr).ok());
  }
  /// What comes on the second stream waits for what is on the first.
  void order(CUstream before, CUstream after) const {
    gpu::Event event = gpu::Event::create(gpu).value();
    EXPECT_TRUE(event.record(before).ok());
    EXPECT_TRUE(event.waitOn(after).ok());
  }
};

/// Communicators by name, and who is in them: `members[i]` are places, in the order of their ranks.
struct Table {
  std::vector<std::vector<int>> members;
  std::vector<ncclUniqueId> ids;
};

using Comms = std::vector<ncclComm_t>;  ///< of one place, null where it is no member

Comms joinAll(const Table& table, int place) {
  Comms comms(table.members.size(), nullptr);
  for (std::size_t i = 0; i < comms.size(); ++i) {
    const std::vector<int>& members = table.members[i];
    const auto at = std::find(members.begin(), members.end(), place);
    if (at == members.end()) continue;
    EXPECT_EQ(ncclCommInitRank(&comms[i], static_cast<int>(members.size()), table.ids[i],
                               static_cast<int>(at - members.begin())),
              ncclSuccess);
  }
  return comms;
}

/// Runs `body` on a thread for each place, which then aborts or destroys its communicators.
void withComms(int places, std::vector<std::vector<int>> members, bool abort,
               const std::function<void(const Party&, const Comms&)>& body) {
  Table table{std::move(members), {}};
  for (std::size_t i = 0; i < table.members.size(); ++i) table.ids.push_back(test::newId());
  test::runRanks(places, [&](int place) {
    test::useDevice(place);
    const Comms comms = joinAll(table, place);
    {
      const test::Ints data(test::device(place), kCount, place);
      const Party party(place, data);
      body(party, comms);
      for (ncclComm_t comm : comms) {
        if (comm != nullptr && abort) {
          EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
        }
      }
      party.sync();
    }
    for (ncclComm_t comm : comms) {
      if (comm != nullptr && !abort) {
        EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
      }
    }
  });
}

const std::string kRank = R"(rank \d \(host [^,]+, device \d, pid \d+\))";
const std::string kCall = R"(AllReduce number \d+ of communicator 0x[0-9a-f]+)";

/// A circle of so many communicators, told by one whose call waits.
std::regex circleOf(std::size_t comms, const std::string& behind = "is queued behind") {
  std::string text = "a circle: " + kRank + " waits in " + kCall + " for " + kRank;
  for (std::size_t i = 1; i <= comms; ++i) {
    text += (i == 1 ? ", whose call of it " : ", whose call of that ") + behind + " " + kCall;
    if (i < comms) text += ", which waits for " + kRank;
  }
  return std::regex(text + "\\. Call the communicators");
}

/// All places meet here, once.
class Meeting {
 public:
  explicit Meeting(int places) : missing_(places) {}
  void arrive() {
    --missing_;
    const Deadline deadline = Deadline::in(std::chrono::seconds(60));
    while (missing_ > 0 && !deadline.expired()) std::this_thread::sleep_for(milliseconds(5));
  }

 private:
  std::atomic<int> missing_;
};

TEST(WorldCircles, TwoCommunicatorsInOppositeOrderAreNamed) {
  stallAfter("1");
  Meeting end(2);
  withComms(2, {{0, 1}, {0, 1}}, true, [&](const Party& party, const Comms& comms) {
    // So that the circle is of the third call of one and the second of the other.
    for (int i = 0; i < 2; ++i) party.allReduce(comms[0]);
    party.allReduce(comms[1]);
    party.sync();
    party.allReduce(comms[static_cast<std::size_t>(party.place)]);
    party.allReduce(comms[static_cast<std::size_t>(1 - party.place)]);
    EXPECT_TRUE(awaitLog("a circle: ", 4)) << test::capturedText();
    if (party.place == 0) {
      const std::string text = askOwnProcess();
      EXPECT_EQ(countOf(text, "a circle: "), 4U) << text;
      EXPECT_EQ(countOf(text, kRemedy), 4U) << text;
    }
    end.arrive();
  });
  const std::string log = test::capturedText();
  EXPECT_EQ(countOf(log, "Stall: "), 4U) << log;
  EXPECT_TRUE(std::regex_search(log, circleOf(2))) << log;
  EXPECT_NE(log.find("AllReduce number 3 of communicator"), std::string::npos) << log;
  EXPECT_NE(log.find("AllReduce number 2 of communicator"), std::string::npos) << log;
  EXPECT_EQ(countOf(log, kRemedy), 4U) << log;
}

TEST(WorldCircles, ThreeCommunicatorsOfThreeRanksAreNamed) {
  stallAfter("1");
  Meeting end(3);
  // Each has two of them, and calls the one before the other.
  withComms(3, {{0, 2}, {1, 0}, {2, 1}}, true, [&](const Party& party, const Comms& comms) {
    const auto first = static_cast<std::size_t>(party.place);
    party.allReduce(comms[first]);
    party.allReduce(comms[(first + 1) % 3]);
    EXPECT_TRUE(awaitLog("a circle: ", 6)) << test::capturedText();
    end.arrive();
  });
  const std::string log = test::capturedText();
  EXPECT_EQ(countOf(log, "a circle: "), 6U) << log;
  EXPECT_TRUE(std::regex_search(log, circleOf(3))) << log;
}

TEST(WorldCircles, RanksThatWaitForACircleOfOthersNameIt) {
  stallAfter("1");
  Meeting end(4);
  withComms(4, {{0, 1, 2, 3}, {3, 2, 1, 0}}, true, [&](const Party& party, const Comms& comms) {
    const std::size_t first = party.place < 2 ? 0 : 1;
    party.allReduce(comms[first]);
    party.allReduce(comms[1 - first]);
    EXPECT_TRUE(awaitLog("a circle: ", 8)) << test::capturedText();
    end.arrive();
  });
  EXPECT_TRUE(std::regex_search(test::capturedText(), circleOf(2))) << test::capturedText();
}

TEST(WorldCircles, CallsFarBackInTheQueueAreNamedByTheFirstThatDoesNotEnd) {
  stallAfter("1");
  Meeting end(2);
  withComms(2, {{0, 1}, {0, 1}}, true, [&](const Party& party, const Comms& comms) {
    for (int i = 0; i < 5; ++i) {
      party.allReduce(comms[0]);
      party.allReduce(comms[1]);
    }
    for (int i = 0; i < 5; ++i) {
      party.allReduce(comms[static_cast<std::size_t>(party.place)]);
      party.allReduce(comms[static_cast<std::size_t>(1 - party.place)]);
    }
    EXPECT_TRUE(awaitLog("a circle: ", 4)) << test::capturedText();
    end.arrive();
  });
  const std::string log = test::capturedText();
  EXPECT_TRUE(std::regex_search(log, circleOf(2))) << log;
  EXPECT_EQ(countOf(log, "AllReduce number 6 of communicator"), 12U) << log;
}

TEST(WorldCircles, StreamsThatTheApplicationOrdersAreNamedWithADoubt) {
  stallAfter("1");
  Meeting end(2);
  withComms(2, {{0, 1}, {0, 1}}, true, [&](const Party& party, const Comms& comms) {
    party.allReduce(comms[static_cast<std::size_t>(party.place)], party.first.get());
    party.order(party.first.get(), party.second.get());
    party.allReduce(comms[static_cast<std::size_t>(1 - party.place)], party.second.get());
    EXPECT_TRUE(awaitLog("it seems to be a circle: ", 4)) << test::capturedText();
    end.arrive();
  });
  EXPECT_TRUE(
      std::regex_search(test::capturedText(), circleOf(2, "has not begun, on another stream, and seems to be behind")))
      << test::capturedText();
}

TEST(WorldCircles, CallsThatWaitOnTheHostAreNamed) {
  stallAfter("1");
  test::allowLog("communicator was revoked by ncclCommRevoke");
  Meeting end(2);
  std::vector<std::thread> aborters(2);
  withComms(2, {{0, 1}, {0, 1}}, false, [&](const Party& party, const Comms& comms) {
    // A first AlltoAll opens connections: it waits for the peer's.
    const auto first = static_cast<std::size_t>(party.place);
    aborters[first] = std::thread([&, first] {
      EXPECT_TRUE(awaitLog("a circle: ", 2)) << test::capturedText();
      end.arrive();
      EXPECT_EQ(ncclCommRevoke(comms[first], 0), ncclSuccess);
    });
    EXPECT_NE(ncclAlltoAll(party.data.at(), party.data.at(kCount / 2), kCount / 4, ncclInt32, comms[first],
                           party.first.get()),
              ncclSuccess);
    aborters[first].join();
  });
  const std::string log = test::capturedText();
  EXPECT_NE(log.find("whose call of it was not made, for its thread waits in the call of AlltoAll number 1"),
            std::string::npos)
      << log;
  EXPECT_NE(log.find("NCCL_RUNTIME_CONNECT=0"), std::string::npos) << log;
}

/// Every rank waits on the host for its first call before it makes the second.
TEST(WorldCircles, RanksThatWaitBetweenTheCallsAreToldWhatThatMeans) {
  stallAfter("1");
  Meeting end(2);
  withComms(2, {{0, 1}, {0, 1}}, true, [&](const Party& party, const Comms& comms) {
    party.allReduce(comms[static_cast<std::size_t>(party.place)]);
    EXPECT_TRUE(awaitLog("whose call of it was not made, for its thread has made AllReduce number 1", 2))
        << test::capturedText();
    end.arrive();
  });
  const std::string log = test::capturedText();
  EXPECT_EQ(countOf(log, "a circle"), 0U) << log;
  EXPECT_NE(log.find("If the threads wait for one call before they make the next"), std::string::npos) << log;
}

TEST(WorldCircles, ARankThatIsLateIsNoCircle) {
  stallAfter("1");
  withComms(2, {{0, 1}, {0, 1}}, false, [&](const Party& party, const Comms& comms) {
    party.allReduce(comms[0]);
    party.allReduce(comms[1]);
    party.sync();
    if (party.place == 1) {
      EXPECT_TRUE(awaitLog("Stall: ", 2)) << test::capturedText();
      std::this_thread::sleep_for(milliseconds(3000));
    }
    // On rank 0 the second one is queued behind the first, which waits for rank 1.
    party.allReduce(comms[0]);
    party.allReduce(comms[1]);
    party.sync();
  });
  const std::string log = test::capturedText();
  EXPECT_EQ(countOf(log, "a circle"), 0U) << log;
  EXPECT_GE(countOf(log, "it has not called AllReduce yet"), 1U) << log;
}

TEST(WorldCircles, ACallBehindOneThatMovesIsNoCircle) {
  stallAfter("1");
  constexpr int kSteps = 60;
  withComms(2, {{0, 1}, {0, 1}}, false, [&](const Party& party, const Comms& comms) {
    for (int i = 0; i < 2; ++i) party.allReduce(comms[static_cast<std::size_t>(i)]);
    party.sync();
    if (party.place == 0) {
      // Waits for rank 1, whose call of it is queued behind those that move for six seconds.
      party.allReduce(comms[0], party.second.get());
      for (int i = 0; i < kSteps; ++i) {
        party.allReduce(comms[1]);
        std::this_thread::sleep_for(milliseconds(100));
      }
    } else {
      for (int i = 0; i < kSteps; ++i) party.allReduce(comms[1]);
      party.allReduce(comms[0]);
    }
    party.sync();
  });
  EXPECT_EQ(countOf(test::capturedText(), "a circle"), 0U) << test::capturedText();
}

}  // namespace
}  // namespace tutti::comm
