#include "bootstrap/link/paced_listener.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <span>
#include <thread>

#include "link/knocking.h"
#include "support/log_capture.h"

namespace tutti::bootstrap {
namespace {

constexpr std::uint32_t kMaxFrame = 4096;

class PacedListenerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(initCrypto().ok());
    fillRandom(key_);
    ASSERT_TRUE(listener_.watch(poller_, 7));
  }

  /// Who is let in by the time `count` are, or for as long as a busy machine may need for one.
  std::vector<Arrival> take(std::size_t count) {
    std::vector<Arrival> all;
    test::eventually([&] {
      listener_.tend();
      for (Arrival& arrival : listener_.take(key_, 0, kMaxFrame)) all.push_back(std::move(arrival));
      return all.size() >= count;
    });
    return all;
  }
  /// Takes until so many have been turned away in all.
  std::vector<Arrival> takeUntilTurnedAway(std::uint64_t count) {
    std::vector<Arrival> all;
    EXPECT_TRUE(test::eventually([&] {
      listener_.tend();
      for (Arrival& arrival : listener_.take(key_, 0, kMaxFrame)) all.push_back(std::move(arrival));
      return listener_.turnedAway() >= count;
    }));
    return all;
  }

  /// Strangers with garbage, until the kernel leaves them unanswered.
  void besiege() {
    const std::array<std::byte, 100> garbage{};
    EXPECT_TRUE(test::eventually([&] {
      for (int i = 0; i < 40; ++i) {
        Socket socket;
        (void)Socket::tryConnect(at_, {Deadline::in(milliseconds(1)), nullptr, -1}, &socket);
        if (socket.valid()) (void)socket.trySend(garbage);
      }
      listener_.tend();
      (void)listener_.take(key_, 0, kMaxFrame);
      return listener_.oneIn() >= 8;
    }));
  }
  /// Serves until `client` has come in.
  void serveUntil(const std::function<bool()>& done) {
    std::vector<Arrival> all;
    EXPECT_TRUE(test::eventually([&] {
      listener_.tend();
      for (Arrival& arrival : listener_.take(key_, 0, kMaxFrame)) all.push_back(std::move(arrival));
      std::vector<Frame> none;
      for (Arrival& arrival : all) arrival.link->receive(none);
      return done();
    }));
  }

  Key key_{};
  Poller poller_ = Poller::create().value();
  UnprovenPlaces places_{8};
  Sieges sieges_;
  Listener plain_ = Listener::listen(Address::loopback(AF_INET)).value();
  Address at_ = plain_.address();
  PacedListener listener_{std::move(plain_), "the root", places_, sieges_};
};

TEST_F(PacedListenerTest, SilentClientsHaveFewPlacesAndTheLastOnesAreReset) {
  std::vector<Socket> silent;
  for (int i = 0; i < 10; ++i) silent.push_back(test::connectTo(at_));
  const auto let = takeUntilTurnedAway(6);
  EXPECT_EQ(let.size(), 4u) << "half of the places are for one host";
  EXPECT_EQ(places_.taken(), 4u);
  // In which order they come is the kernel's affair.
  int reset = 0;
  EXPECT_TRUE(test::eventually([&] {
    for (Socket& socket : silent) {
      if (socket.valid() && test::endOf(socket, milliseconds(1)) == ECONNRESET) {
        ++reset;
        socket.close();
      }
    }
    return reset == 6;
  }));
}

TEST_F(PacedListenerTest, WhoSpeaksALittleLateIsNotTurnedAway) {
  std::vector<Socket> silent;
  for (int i = 0; i < 8; ++i) silent.push_back(test::connectTo(at_));
  const auto strangers = takeUntilTurnedAway(4);
  const Hello hello = ClientHandshake(key_, Purpose::Peer, 1, 0).hello();
  // A busy machine may be later than the kernel waits, but not each time.
  EXPECT_TRUE(test::eventually([&] {
    Socket late = test::connectTo(at_);
    std::size_t came = 0;
    for (int i = 0; i < 20; ++i) {
      if (i == 10) (void)late.trySend(std::as_bytes(std::span(&hello, 1)));
      std::this_thread::sleep_for(milliseconds(5));
      listener_.tend();
      for (const Arrival& arrival : listener_.take(key_, 0, kMaxFrame)) came += arrival.link->passed() ? 1 : 0;
    }
    return came == 1;
  }));
}

TEST_F(PacedListenerTest, WhoShowsAPassComesInThoughAllPlacesAreTaken) {
  std::vector<Socket> silent;
  for (int i = 0; i < 8; ++i) silent.push_back(test::connectTo(at_));
  const auto strangers = takeUntilTurnedAway(4);
  Socket honest;
  // The hello may come after the connection: then it is turned away, and comes again.
  const auto comesIn = [&] {
    honest = test::greet(at_, key_);
    std::this_thread::sleep_for(milliseconds(5));
    listener_.tend();
    const auto arrivals = listener_.take(key_, 0, kMaxFrame);
    return arrivals.size() == 1 && arrivals[0].link->passed() && !arrivals[0].place.taken();
  };
  EXPECT_TRUE(test::eventually(comesIn));
}

TEST_F(PacedListenerTest, AWrongPassEndsInOrderAndGarbageWithAReset) {
  Key other = key_;
  other[3] ^= std::byte{1};
  Socket wrong = test::greet(at_, other);
  EXPECT_TRUE(test::eventually([&] {
    listener_.tend();
    for (Arrival& arrival : listener_.take(key_, 0, kMaxFrame)) {
      std::vector<Frame> none;
      EXPECT_TRUE(test::eventually([&] {
        arrival.link->receive(none);
        return arrival.link->end().has_value();
      }));
    }
    return test::endOf(wrong, milliseconds(5)) == 0;
  }));
  Socket garbage = test::connectTo(at_);
  const std::array<std::byte, 100> bytes{};
  (void)garbage.trySend(bytes);
  (void)takeUntilTurnedAway(listener_.turnedAway() + 1);
  EXPECT_EQ(test::endOf(garbage), ECONNRESET);
}

TEST_F(PacedListenerTest, WhatFollowsAHelloAtOnceIsNotLost) {
  Socket socket = test::connectTo(at_);
  Link client(std::move(socket), ClientHandshake(key_, Purpose::Peer, 1, 0), kMaxFrame);
  client.send(FrameType::Message, 5, std::make_shared<const Bytes>(16));
  client.flush();
  auto let = take(1);
  ASSERT_EQ(let.size(), 1u);
  std::vector<Frame> frames;
  std::vector<Frame> none;
  EXPECT_TRUE(test::eventually([&] {
    client.receive(none);
    client.flush();
    let[0].link->receive(frames);
    return !frames.empty();
  }));
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].header.tag, 5);
}

TEST_F(PacedListenerTest, WhileStrangersCrowdWhoHasTheKeyComesInAndFewOfThemDo) {
  besiege();
  const std::uint64_t before = listener_.turnedAway();
  int answered = 0;
  for (int i = 0; i < 100; ++i) {
    Socket socket;
    if (Socket::tryConnect(at_, {Deadline::in(milliseconds(0)), nullptr, -1}, &socket).done()) ++answered;
  }
  EXPECT_LT(answered, 60);
  EXPECT_EQ(listener_.turnedAway(), before) << "the kernel has kept them back";
  std::atomic<bool> done = false;
  Dialed dialed;
  std::thread client([&] {
    const Deadline until = Deadline::in(std::chrono::seconds(20));
    dialed = dial({at_, key_, Purpose::Peer, 1, 0, kMaxFrame}, {.listening = until, .deadline = until});
    done = true;
  });
  serveUntil([&] { return done.load(); });
  client.join();
  EXPECT_EQ(dialed.kind, Dialed::Kind::Open);
}

TEST_F(PacedListenerTest, AHelloThatComesInPiecesIsUnderstoodWhileStrangersCrowd) {
  besiege();
  const Hello hello = ClientHandshake(key_, Purpose::Peer, 1, 0).hello();
  const auto bytes = std::as_bytes(std::span(&hello, 1));
  Socket socket;
  std::size_t sent = 0;
  // As much as the kernel looks at.
  ASSERT_TRUE(
      Socket::tryKnock(at_, {Deadline::in(std::chrono::seconds(20)), nullptr, -1}, bytes.first(16), &socket, &sent)
          .done());
  (void)socket.trySend(bytes.subspan(sent, 50 - sent));
  auto let = take(1);
  ASSERT_EQ(let.size(), 1u);
  (void)socket.trySend(bytes.subspan(50));
  std::vector<Frame> none;
  EXPECT_TRUE(test::eventually([&] {
    let[0].link->receive(none);
    return let[0].link->passed();
  }));
  EXPECT_FALSE(let[0].link->end().has_value());
}

TEST_F(PacedListenerTest, WithoutDescriptorsItRestsAndSaysSoOnceAndNobodyIsLost) {
  test::expectLog("the root cannot accept connections");
  Socket socket = test::greet(at_, key_);
  {
    const test::NoDescriptors none;
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(listener_.take(key_, 0, kMaxFrame).empty());
    EXPECT_TRUE(listener_.starvedSince().has_value());
    EXPECT_FALSE(listener_.next().isNever());
    std::vector<Poller::Event> events;
    poller_.wait(events, milliseconds(0));
    EXPECT_TRUE(events.empty()) << "a listener that rests wakes nobody";
  }
  EXPECT_EQ(take(1).size(), 1u);
  EXPECT_FALSE(listener_.starvedSince().has_value());
  EXPECT_NE(test::capturedText().find("ulimit -n"), std::string::npos);
}

}  // namespace
}  // namespace tutti::bootstrap
