// What a service makes of processes that are silent or dead, and of strangers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "bootstrap/link/paced_listener.h"
#include "ras/job.h"
#include "ras/network/peer_link.h"
#include "ras/service.h"

namespace tutti::ras::test {
namespace {

using testing::HasSubstr;

/// Accepts connections by the kernel alone, as a process does that is stopped.
struct StoppedProcess {
  Listener listener = loopbackListener();
  Member self = freshMember(listener.address(), 77);
};

TEST(RasTrouble, AQueryEndsInTimeWhereAProcessIsStopped) {
  FakeJob job(3);
  const StoppedProcess stopped;
  job[0].service->add({stopped.self});
  const auto start = SteadyClock::now();
  const nlohmann::json report = askJson(job[0], "TIMEOUT 1\n");
  EXPECT_LT(secondsSince(start), 20);
  EXPECT_EQ(report["ras"]["timeouts_count"], 1);
  EXPECT_EQ(report["communicators"][0]["ranks_count"], 3);
  EXPECT_EQ(inState(report, "unresponsive"), 1U);
  EXPECT_THAT(ask(job[0], "TIMEOUT 1\nSTATUS\n"),
              HasSubstr("INCOMPLETE\n  Missing communicator data from 1 job process\n  Process 1077 on node"));
}

TEST(RasTrouble, WhoDoesNotListenAnyMoreIsMissedAtOnce) {
  FakeJob job(2);
  StoppedProcess gone;
  job[0].service->add({gone.self});
  gone.listener.close();
  const auto start = SteadyClock::now();
  const nlohmann::json report = askJson(job[0], "TIMEOUT 0\n");
  EXPECT_LT(secondsSince(start), 20);
  EXPECT_EQ(report["ras"]["timeouts_count"], 0);
  EXPECT_EQ(inState(report, "answered"), 2U);
}

TEST(RasTrouble, SilenceIsToldFirstAndThenDeath) {
  FakeJob job(3, 0.03);
  Client monitor(job[0].client);
  monitor.say("MONITOR all\n");
  std::string told = monitor.hearUntil("OK\n");
  const StoppedProcess stopped;
  for (const auto& process : job.processes) process->service->add({stopped.self});
  told += monitor.hearUntil("PEER_DEAD");
  EXPECT_THAT(told, HasSubstr("PEER_NEW: Process 1077 on node 127.0.0.1 managing GPU 13"));
  EXPECT_THAT(told, HasSubstr("PEER_DEAD: Process 1077"));
  for (const auto& process : job.processes) {
    EXPECT_TRUE(becomes(*process, [](const nlohmann::json& report) { return inState(report, "dead") == 1; }));
  }
  EXPECT_THAT(ask(job[1], "STATUS\n"), HasSubstr("DEAD\n  1 job process is considered dead"));
}

/// What a process that is alone with another one tells of it, up to `last`.
std::string storyOf(FakeProcess& watcher, const Member& other, std::string_view last) {
  Client monitor(watcher.client);
  monitor.say("MONITOR trace\n");
  EXPECT_EQ(monitor.hearUntil("OK\n"), "OK\n");
  watcher.service->add({other});
  return monitor.hearUntil(last);
}

/// Whether the events come in this order; the same one again, and others, may come between.
testing::AssertionResult tells(const std::string& story, const std::vector<std::string>& events) {
  std::size_t at = 0;
  for (const std::string& event : events) {
    at = story.find(event, at);
    if (at == std::string::npos)
      return testing::AssertionFailure() << event << " is not where it belongs in\n" << story;
  }
  return testing::AssertionSuccess();
}

TEST(RasTrouble, TellsTheStagesOfAConnectionThatIsNeverAnswered) {
  FakeProcess watcher(0, 0.03);
  const StoppedProcess stopped;
  const std::string story = storyOf(watcher, stopped.self, "PEER_TIMEOUT_DEAD");
  // Twice at least in 60 s, after 20 s each.
  const std::string who = ": Process 1077 on node 127.0.0.1 managing GPU 13";
  EXPECT_TRUE(tells(story, {"PEER_UNRESPONSIVE" + who + " nothing heard for ",
                            "PEER_INIT_TIMEOUT" + who + " no handshake for ", "PEER_RETRY" + who + "\n",
                            "PEER_INIT_TIMEOUT" + who, "PEER_TIMEOUT_DEAD" + who + " nothing heard for "}));
  EXPECT_THAT(story, testing::Not(HasSubstr("PEER_CONNECTED")));
}

TEST(RasTrouble, TriesAgainWhereNobodyListensAndTellsThatEachTime) {
  FakeProcess watcher(0, 0.01);
  StoppedProcess gone;
  gone.listener.close();
  const std::string story = storyOf(watcher, gone.self, "PEER_TIMEOUT_DEAD");
  EXPECT_TRUE(tells(story, {"PEER_RETRY", "PEER_RETRY", "PEER_UNRESPONSIVE", "PEER_RETRY", "PEER_TIMEOUT_DEAD"}));
  EXPECT_THAT(story, testing::Not(HasSubstr("PEER_INIT_TIMEOUT")));
}

TEST(RasTrouble, TheRingClosesAroundManyDead) {
  FakeJob job(3, 0.03);
  std::vector<std::unique_ptr<StoppedProcess>> stopped;
  for (int n = 0; n < 10; ++n) {
    stopped.push_back(std::make_unique<StoppedProcess>());
    job[0].service->add({stopped.back()->self});
  }
  for (const auto& process : job.processes) {
    EXPECT_TRUE(becomes(*process, [](const nlohmann::json& report) {
      return inState(report, "dead") == 10 && inState(report, "answered") == 3;
    }));
  }
}

TEST(RasTrouble, RandomBytesOfClientsHarmNobody) {
  FakeJob job(1);
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    Client client(job[0].client);
    std::string bytes;
    for (std::uint32_t n = random() % 3000; n > 0; --n) bytes += static_cast<char>(random() % 256);
    client.say(bytes);
    if (i % 2 == 0) client.finish();
    if (i % 2 == 0) static_cast<void>(client.hearAll());
  }
  EXPECT_THAT(ask(job[0], "STATUS\n"), HasSubstr("RUNNING      OK\n"));
}

TEST(RasTrouble, StrangersAtTheProcessesOwnDoorAreClosed) {
  FakeJob job(2);
  std::mt19937 random(4);
  for (int i = 0; i < 40; ++i) {
    Client stranger(job[0].self.facts.address);
    std::string bytes;
    for (std::uint32_t n = random() % 300; n > 0; --n) bytes += static_cast<char>(random() % 256);
    stranger.say(bytes);
    if (i % 4 == 0) {
      EXPECT_EQ(stranger.hearAll(std::chrono::seconds(20)), "");
    }
  }
  EXPECT_EQ(inState(askJson(job[1]), "answered"), 2U);
}

/// One that has the key, and says what makes no sense.
void talkNonsense(const Member& to, Message message, const Bytes& payload) {
  PeerLink link(to.facts.address, to.key);
  link.send(message, payload);
  const Deadline deadline = Deadline::in(std::chrono::seconds(20));
  while (!link.ended() && !deadline.expired()) {
    link.advance();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    // A question is answered, which is no nonsense.
    if (!link.frames().empty()) return;
  }
  EXPECT_TRUE(link.ended()) << static_cast<int>(message);
}

TEST(RasTrouble, NonsenseOfAProcessOfTheJobClosesItsConnection) {
  FakeJob job(2);
  std::mt19937 random(5);
  for (int i = 0; i < 100; ++i) {
    Bytes payload(random() % 200);
    for (std::byte& byte : payload) byte = static_cast<std::byte>(random());
    talkNonsense(job[0].self, static_cast<Message>(random() % 12), payload);
  }
  EXPECT_EQ(inState(askJson(job[1]), "answered"), 2U);
  EXPECT_EQ(inState(askJson(job[0]), "answered"), 2U);
}

TEST(RasTrouble, AClientThatTakesNothingDoesNotHoldUpOthers) {
  FakeJob job(2);
  Client lazy(job[0].client);
  lazy.say("STATUS\n");
  Client monitor(job[0].client);
  monitor.say("MONITOR all\n");
  for (int i = 0; i < 20; ++i) EXPECT_THAT(ask(job[0], "STATUS\n"), HasSubstr("RUNNING      OK\n"));
}

enum class Manners : std::uint8_t {
  Closes,   ///< as a process does that is about to end
  Silent,   ///< takes what is said
  Blocked,  ///< takes nothing
};

/// Opens its door, and gives no answer to what is said.
class ProcessThatHearsNobody {
 public:
  explicit ProcessThatHearsNobody(Manners manners = Manners::Closes) : manners_(manners) {
    auto listener = Listener::listen(Address::parse("127.0.0.2:0").value());
    EXPECT_TRUE(listener.ok());
    const int few = 4096;  // bytes, which its connections inherit
    EXPECT_EQ(::setsockopt(listener.value().fd(), SOL_SOCKET, SO_RCVBUF, &few, sizeof(few)), 0);
    self = freshMember(listener.value().address(), 66);
    listening_ = std::move(listener).value();
    thread_ = std::thread([this] { run(); });
  }
  ~ProcessThatHearsNobody() {
    over_.store(true);
    thread_.join();
  }

  Member self;

 private:
  void run() {
    bootstrap::PacedListener listener(std::move(listening_), "a test");
    std::vector<bootstrap::Arrival> guests;
    std::vector<bootstrap::Frame> frames;
    while (!over_.load()) {
      for (bootstrap::Arrival& arrival : listener.take(self.key, 0, kMaxMessage)) guests.push_back(std::move(arrival));
      for (const bootstrap::Arrival& guest : guests) {
        if (manners_ == Manners::Blocked && guest.link->open()) continue;
        guest.link->receive(frames);
        guest.link->flush();
      }
      std::erase_if(guests, [this](const auto& guest) {
        return (guest.link->open() && manners_ == Manners::Closes) || guest.link->end();
      });
      listener.tend();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  const Manners manners_;
  Listener listening_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

TEST(RasTrouble, MakesAConnectionAnewOnWhichNothingIsHeard) {
  FakeProcess watcher(0, 0.02);
  const ProcessThatHearsNobody silent(Manners::Silent);
  const std::string story = storyOf(watcher, silent.self, "PEER_RECOVERED");
  // A handshake is a sign of life.
  EXPECT_TRUE(
      tells(story, {"PEER_CONNECTED: Process 1066", "PEER_UNRESPONSIVE", "PEER_KEEPALIVE_TIMEOUT", "PEER_DISCONNECTED",
                    "no keep-alive in time", "PEER_RETRY", "PEER_RECOVERED: Process 1066"}));
  EXPECT_THAT(story, testing::Not(HasSubstr("PEER_SEND_STUCK")));
}

/// So many processes that what is said of them fits into no socket's buffers.
std::vector<Member> crowd() {
  std::vector<Member> members(45'000, freshMember(Address::parse("127.0.0.3:1").value(), 1));
  std::uint16_t port = 0;
  for (Member& member : members) {
    bootstrap::fillRandom(member.key);
    member.facts.id = idOf(member.key);
    member.facts.address = Address::loopback(AF_INET, ++port);
    member.facts.state = ProcessState::Left;
  }
  return members;
}

TEST(RasTrouble, MakesAConnectionAnewOnWhichNothingCanBeSent) {
  FakeProcess watcher(0, 0.05);
  const ProcessThatHearsNobody blocked(Manners::Blocked);
  Client monitor(watcher.client);
  monitor.say("MONITOR trace\n");
  watcher.service->add({blocked.self});
  EXPECT_THAT(monitor.hearUntil("PEER_CONNECTED"), HasSubstr("PEER_CONNECTED: Process 1066"));
  watcher.service->add(crowd());
  const std::string story = monitor.hearUntil("PEER_RETRY");
  EXPECT_TRUE(tells(story, {"PEER_SEND_STUCK: Process 1066", "nothing heard for ", "PEER_DISCONNECTED",
                            "nothing can be sent", "PEER_RETRY: Process 1066"}));
  EXPECT_THAT(story, testing::Not(HasSubstr("PEER_KEEPALIVE_TIMEOUT")));
}

TEST(RasTrouble, WhoLeavesTellsSomebodyWhoHearsIt) {
  FakeProcess a(0, 10);
  FakeProcess b(1, 10);
  const ProcessThatHearsNobody deaf;
  // In the ring, which goes by addresses and ports, it comes behind the one that leaves and before the other.
  const bool aIsFirst = a.self.facts.address.port() < b.self.facts.address.port();
  FakeProcess& stays = aIsFirst ? a : b;
  FakeProcess& leaves = aIsFirst ? b : a;
  leaves.service->add({deaf.self, stays.self});
  leaves.service->stop(Deadline::in(std::chrono::seconds(20)));
  EXPECT_TRUE(becomes(stays, [](const nlohmann::json& report) { return inState(report, "left") == 1; }));
}

TEST(RasTrouble, WhoLeavesCallsAgainWhereAConnectionEndsUnheard) {
  FakeProcess a(0, 10);
  FakeProcess b(1, 10);
  const ProcessThatHearsNobody deaf;
  const bool aIsFirst = a.self.facts.address.port() < b.self.facts.address.port();
  FakeProcess& stays = aIsFirst ? a : b;
  FakeProcess& leaves = aIsFirst ? b : a;
  Client monitor(leaves.client);
  monitor.say("MONITOR all\n");
  EXPECT_THAT(monitor.hearUntil("OK\n"), HasSubstr("OK\n"));
  // It watches the one that hears nobody, and has one connection to the one that stays: a test's, which ends unheard.
  leaves.service->add({deaf.self, stays.self});
  PeerLink link(leaves.self.facts.address, leaves.self.key);
  const Member* const introduced = &stays.self;
  link.send(Message::Intro, encodeTable(std::span(&introduced, 1), leaves.self.key));
  std::thread unheard([&] {
    const Deadline deadline = Deadline::in(std::chrono::seconds(20));
    while (!deadline.expired() && !link.ended()) {
      link.advance();
      for (const bootstrap::Frame& frame : link.frames()) {
        if (static_cast<Message>(frame.header.op) == Message::Goodbye) link.close("a test");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const std::string introducedText = "PEER_CONNECTED: Process " + std::to_string(stays.self.facts.pid);
  EXPECT_THAT(monitor.hearUntil(introducedText), HasSubstr(introducedText));
  leaves.service->stop(Deadline::in(std::chrono::seconds(20)));
  unheard.join();
  EXPECT_TRUE(becomes(stays, [](const nlohmann::json& report) { return inState(report, "left") == 1; }));
}

}  // namespace
}  // namespace tutti::ras::test
