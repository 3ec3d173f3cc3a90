#include "bootstrap/engine.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/log.h"
#include "support/log_capture.h"

namespace tutti {
namespace {

/// One of two ranks, with nobody connected yet.
std::shared_ptr<Engine> startEngine(int rank, Address* listens) {
  Listener listener = Listener::listen(Address::loopback(AF_INET)).value();
  *listens = listener.address();
  Engine::Options options;
  options.rank = rank;
  options.nRanks = 2;
  options.place = treePlace(2, 1, rank);
  options.peerTimeout = options.handshakeTimeout = milliseconds(20'000);
  return Engine::start(std::move(options), std::move(listener)).value();
}

TEST(Engine, AChildThatConnectsDuringTheLastWordsHearsOfTheAbort) {
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
  std::this_thread::sleep_for(milliseconds(50));   // the parent has said its last words to those who are there: nobody
  auto socket = Socket::connect(at, {Deadline::in(milliseconds(20'000)), nullptr, -1});
  ASSERT_TRUE(socket.ok());
  child->addClient(std::move(socket).value(), ClientHandshake(key, Purpose::Tree, 1, 0), Role::Tree, 0);
  const auto frame = child->await(Channel::Collective, 0, 0, Deadline::in(milliseconds(20'000)), [] { return "a word"; });
  stopper.join();
  EXPECT_EQ(frame.status().code(), ncclRemoteError);
  EXPECT_NE(std::string(lastErrorText()).find("rank 0 aborted its communicator"), std::string::npos) << lastErrorText();
}

}  // namespace
}  // namespace tutti
