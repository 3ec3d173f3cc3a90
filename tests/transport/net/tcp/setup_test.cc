// Connections of the built-in network that do not come to stand: sockets are lost, nobody answers, somebody gives up.
#include <gtest/gtest.h>

#include "base/socket/socket.h"
#include "support/descriptors.h"
#include "support/log_capture.h"
#include "transport/net/tcp/connector.h"
#include "transport/net/tcp/listener.h"
#include "transport/net/tcp/socket_pair.h"

namespace tutti::net::tcp {
namespace {

using namespace test;

const SocketIdentity& identity() {
  static const SocketIdentity kOne{.commId = test::opening().commId, .secret = test::opening().secret};
  return kOne;
}

SocketDevice loopback() {
  SocketDevice device;
  device.interface.name = "lo";
  device.interface.address = Address::loopback(AF_INET);
  return device;
}

/// `streams` data sockets, and not much time.
SocketOptions briefly(int streams, milliseconds setup = milliseconds(100)) {
  SocketOptions options;
  options.streams = streams;
  options.setup = setup;
  return options;
}

/// A listener and peers that are spoken by hand.
struct Accepting {
  explicit Accepting(const SocketOptions& options) {
    EXPECT_TRUE(initSocketProofs().ok());
    auto made = SocketListener::open(loopback(), options, identity());
    EXPECT_TRUE(made.ok());
    listener = std::move(made).value();
    handle = listener->handle();
  }
  /// Opens the socket of that number.
  Socket join(std::uint32_t number) const {
    auto socket = Socket::connect(handle.address, Wait{});
    EXPECT_TRUE(socket.ok());
    EXPECT_TRUE(
        socket.value().sendValue(makeHello(identity(), handle.nonce, nonce, number, handle.streams), Wait{}).ok());
    return std::move(socket).value();
  }
  Status fails() const {
    Status status;
    EXPECT_TRUE(test::until([&] { return !(status = listener->accept().status()).ok(); }));
    return status;
  }
  std::unique_ptr<SocketListener> listener;
  SocketHandle handle;
  SocketNonce nonce = freshSocketNonce();
};

/// A connector and a listener that is spoken by hand.
struct Connecting {
  explicit Connecting(const SocketOptions& options) {
    EXPECT_TRUE(initSocketProofs().ok());
    auto made = Listener::listen(Address::loopback(AF_INET));
    EXPECT_TRUE(made.ok());
    listener = std::move(made).value();
    SocketHandle handle{.magic = kSocketMagic, .nonce = freshSocketNonce(), .address = listener.address()};
    handle.streams = static_cast<std::uint32_t>(options.streams);
    connector = std::make_unique<SocketConnector>(loopback(), handle, options, identity());
  }
  Status fails() const {
    Status status;
    EXPECT_TRUE(test::until([&] { return !(status = connector->advance().status()).ok(); }));
    return status;
  }
  Listener listener;
  std::unique_ptr<SocketConnector> connector;
};

TEST(SocketSetup, AConnectThatNobodyAnswersEndsInTime) {
  test::expectLog(
      "3 of 3 sockets are open, and no answer came. Does a firewall drop some of them, or does that process hang?");
  Connecting one(briefly(2));
  EXPECT_EQ(one.fails().code(), ncclRemoteError);
  EXPECT_NE(test::capturedText().find("Connecting to " + one.listener.address().text() +
                                      " from lo came to no end within 100 ms"),
            std::string::npos);
}

TEST(SocketSetup, AnAcceptToWhichNobodyComesEndsInTime) {
  test::expectLog("0 of 3 sockets of the peer have come to 127.0.0.1<");
  Accepting one(briefly(2));
  EXPECT_EQ(one.fails().code(), ncclRemoteError);
}

TEST(SocketSetup, AnAcceptThatMissesASocketEndsInTimeAndNamesThePeer) {
  test::expectLog("2 of 3 sockets of 127.0.0.1<");
  Accepting one(briefly(2));
  const Socket control = one.join(0), data = one.join(2);
  EXPECT_EQ(one.fails().code(), ncclRemoteError);
}

TEST(SocketSetup, TheFirstSocketOfAPeerGivesItTheWholeTime) {
  Accepting one(briefly(1, milliseconds(1000)));
  EXPECT_TRUE(one.listener->accept().ok());
  std::this_thread::sleep_for(700ms);
  const Socket data = one.join(1);
  bool fine = true;
  for (const Deadline half = Deadline::in(500ms); fine && !half.expired();) {
    fine = one.listener->accept().ok();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(fine);
}

TEST(SocketSetup, ASocketThatIsLostIsNoticedByTheListener) {
  for (const std::uint32_t lost : {0u, 2u}) {
    test::expectLog("closed a socket before the connection stood: end of stream");
    Accepting one(briefly(2, test::kGenerous));
    one.join(lost).close();
    EXPECT_EQ(one.fails().code(), ncclRemoteError);
  }
}

TEST(SocketSetup, ASocketThatIsLostIsNoticedByTheConnector) {
  test::expectLog("closed the connection from lo before it stood: end of stream");
  Connecting one(briefly(2, test::kGenerous));
  std::vector<Socket> accepted;
  EXPECT_TRUE(test::until([&] {
    EXPECT_TRUE(one.connector->advance().ok());
    Socket socket;
    if (one.listener.acceptQuietly({Deadline::in(milliseconds(1))}, &socket).done()) {
      SocketHello hello;
      EXPECT_TRUE(socket.recvValue(hello, Wait{}).ok());
      accepted.push_back(std::move(socket));
    }
    return accepted.size() == 3;
  }));
  accepted.back().close();
  EXPECT_EQ(one.fails().code(), ncclRemoteError);
}

TEST(SocketSetup, AConnectThatIsAbandonedClosesItsSockets) {
  test::SocketSide side(test::manySockets(0, 4));
  plugin::NetHandle handle{};
  auto listener = side.net->listen(0, handle);
  ASSERT_TRUE(listener.ok());
  { test::SocketPair warm(side); }
  const std::size_t before = test::openDescriptors();
  for (int i = 0; i < 10; ++i) {
    plugin::NetHandle attempt = handle;
    EXPECT_EQ(side.net->connect(0, attempt).value(), nullptr);
    EXPECT_EQ(test::openDescriptors(), before + 5);
    side.net->abandonConnect(attempt);
    EXPECT_EQ(test::openDescriptors(), before);
    side.net->abandonConnect(attempt);  // harmless
  }
  side.net->abandonConnect(handle);  // which never began
  EXPECT_TRUE(side.net->closeListen(listener.value()).ok());
}

}  // namespace
}  // namespace tutti::net::tcp
