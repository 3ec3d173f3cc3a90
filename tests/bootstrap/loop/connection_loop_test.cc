#include "bootstrap/loop/connection_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/log.h"
#include "support/log_capture.h"

namespace tutti::bootstrap {
namespace {

/// One of two ranks, with nobody connected yet.
std::shared_ptr<ConnectionLoop> startEngine(int rank, Address* listens) {
  Listener listener = Listener::listen(Address::loopback(AF_INET)).value();
  *listens = listener.address();
  ConnectionLoop::Options options;
  options.rank = rank;
  options.nRanks = 2;
  options.place = treePlace(2, 1, rank);
  options.peerTimeout = options.handshakeTimeout = milliseconds(20'000);
  return ConnectionLoop::start(std::move(options), std::move(listener)).value();
}

/// The client's end of a connection whose handshake has not begun.
std::unique_ptr<Link> linkOn(Socket socket, const Key& key, Purpose purpose) {
  return std::make_unique<Link>(std::move(socket), ClientHandshake(key, purpose, 1, 0), kMaxRankFrame);
}

TEST(ConnectionLoop, AChildThatConnectsDuringTheLastWordsHearsOfTheAbort) {
  test::allowLog("aborted its communicator");
  ASSERT_TRUE(initCrypto().ok());
  const Key key{};
  Address at;
  Address unused;
  const auto parent = startEngine(0, &at);
  const auto child = startEngine(1, &unused);
  parent->admit(key);
  parent->abort(Status(ncclInvalidUsage));
  std::thread stopper([&] { parent->stop(); });
  std::this_thread::sleep_for(milliseconds(50));  // the parent has said its last words to those who are there: nobody
  auto socket = Socket::connect(at, {Deadline::in(milliseconds(20'000)), nullptr, -1});
  ASSERT_TRUE(socket.ok());
  child->addClient(linkOn(std::move(socket).value(), key, Purpose::Tree), Role::Tree, 0);
  const auto frame =
      child->await(Channel::Collective, 0, 0, Deadline::in(milliseconds(20'000)), [] { return "a word"; });
  stopper.join();
  EXPECT_EQ(frame.status().code(), ncclRemoteError);
  EXPECT_NE(std::string(lastErrorText()).find(") aborted its communicator"), std::string::npos) << lastErrorText();
}

/// Rank 1 of two with a connection of its own to whoever listens at `at`.
std::shared_ptr<ConnectionLoop> startSender(const Address& at, milliseconds handshakeTimeout, std::atomic<int>& lost) {
  ConnectionLoop::Options options;
  options.rank = 1;
  options.nRanks = 2;
  options.place = treePlace(2, 1, 1);
  options.peerTimeout = milliseconds(20'000);
  options.handshakeTimeout = handshakeTimeout;
  options.onPeerLost = [&lost](const PeerLost& peer) { lost = peer.rank == 0 ? 1 : -1; };
  auto loop = ConnectionLoop::start(std::move(options), Listener::listen(Address::loopback(AF_INET)).value()).value();
  auto socket = Socket::connect(at, {Deadline::in(milliseconds(20'000)), nullptr, -1});
  EXPECT_TRUE(socket.ok());
  loop->addClient(linkOn(std::move(socket).value(), Key{}, Purpose::Peer), Role::PeerOut, 0);
  return loop;
}

bool eventually(const std::function<bool()>& condition) {
  const Deadline deadline = Deadline::in(milliseconds(20'000));
  while (!condition() && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
  return condition();
}

TEST(ConnectionLoop, MessagesThatCannotBeDeliveredAreAFailure) {
  ASSERT_TRUE(initCrypto().ok());
  const Listener silent = Listener::listen(Address::loopback(AF_INET)).value();  // accepts, but says nothing
  std::atomic<int> lost{0};
  const auto sender = startSender(silent.address(), milliseconds(100), lost);
  ASSERT_TRUE(sender->send(0, FrameType::Message, 7, std::make_shared<const Bytes>(16)));
  EXPECT_TRUE(eventually([&] { return lost.load() != 0; }));
  EXPECT_EQ(lost.load(), 1);
  test::expectLog("no answer within 100 ms) before all messages had gone out");
  EXPECT_EQ(sender->checkFailure().code(), ncclRemoteError);
  EXPECT_FALSE(sender->reaches(0));
}

TEST(ConnectionLoop, WhoHeardOfAFailureEarlierIsNotBlamedForIt) {
  ASSERT_TRUE(initCrypto().ok());
  const Listener listener = Listener::listen(Address::loopback(AF_INET)).value();
  std::atomic<int> lost{0};
  const auto sender = startSender(listener.address(), milliseconds(60'000), lost);
  ASSERT_TRUE(sender->send(0, FrameType::Message, 7, std::make_shared<const Bytes>(16)));
  Socket socket;
  const auto came = [&] { return socket.fd() >= 0 || acceptNow(listener.fd(), &socket) == AcceptKind::Accepted; };
  ASSERT_TRUE(eventually(came));
  socket = Socket();  // rank 0 closes all that it has
  ASSERT_TRUE(eventually([&] { return !sender->reaches(0); }));
  EXPECT_TRUE(sender->failure().ok()) << "word of the cause may be under way";
  sender->announce(Status(ncclSystemError), "the cause", false);
  std::this_thread::sleep_for(milliseconds(2500));
  EXPECT_EQ(sender->failure().code(), ncclSystemError);
  EXPECT_EQ(lost.load(), 0);
}

TEST(ConnectionLoop, AConnectionThatEndsWithNothingUnderWayIsNoFailure) {
  ASSERT_TRUE(initCrypto().ok());
  const Listener silent = Listener::listen(Address::loopback(AF_INET)).value();
  std::atomic<int> lost{0};
  const auto sender = startSender(silent.address(), milliseconds(100), lost);
  EXPECT_TRUE(eventually([&] { return !sender->reaches(0); }));
  EXPECT_TRUE(sender->checkFailure().ok());
  EXPECT_EQ(lost.load(), 0);
}

}  // namespace
}  // namespace tutti::bootstrap
