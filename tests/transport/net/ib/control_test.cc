#include "transport/net/ib/control.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "support/log_capture.h"
#include "transport/net/ib/ib_pair.h"
#include "transport/net/ib/wire.h"
#include "transport/net/tcp/connector.h"

namespace tutti::net::ib {
namespace {

using namespace test;

/// A control socket, and the other end of it.
struct ControlPair {
  explicit ControlPair(milliseconds setup) {
    int both[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both), 0);
    other = Fd(both[1]);
    tcp::SocketLink link{.control = Fd(both[0]), .device = "lo"};
    control = std::make_unique<ControlSocket>(std::move(link), setup);
  }
  Fd other;
  std::unique_ptr<ControlSocket> control;
};

TEST(ControlSocket, TakesABlockInPieces) {
  ControlPair pair(10s);
  std::array<std::byte, 4> block{};
  EXPECT_FALSE(pair.control->receive(block).value());
  EXPECT_EQ(::write(pair.other.get(), "ab", 2), 2);
  EXPECT_FALSE(pair.control->receive(block).value());
  EXPECT_EQ(::write(pair.other.get(), "cd", 2), 2);
  EXPECT_TRUE(pair.control->receive(block).value());
  EXPECT_EQ(std::memcmp(block.data(), "abcd", 4), 0);
}

TEST(ControlSocket, NamesAPeerThatIsOverdue) {
  expectLog("has not said within 20 ms which queue pairs it has");
  ControlPair pair(20ms);
  std::array<std::byte, 4> block{};
  Status status;
  EXPECT_TRUE(until([&] {
    status = pair.control->receive(block).status();
    return !status.ok();
  }));
  EXPECT_EQ(status.code(), ncclRemoteError);
}

TEST(ControlSocket, TellsAWordInOrderFromAnEnd) {
  ControlPair left(10s);
  EXPECT_EQ(left.control->look(), ControlSocket::Peer::There);
  EXPECT_EQ(::write(left.other.get(), &kIbBye, 1), 1);
  left.other.reset();
  EXPECT_EQ(left.control->look(), ControlSocket::Peer::Left);
  EXPECT_EQ(left.control->look(), ControlSocket::Peer::Left) << "though the socket has ended since";
  ControlPair gone(10s);
  gone.other.reset();
  EXPECT_EQ(gone.control->look(), ControlSocket::Peer::Gone);
  ControlPair wrong(10s);
  EXPECT_EQ(::write(wrong.other.get(), "?", 1), 1);
  EXPECT_EQ(wrong.control->look(), ControlSocket::Peer::Gone);
}

TEST(ControlSocket, NamesAPeerThatClosesDuringSetup) {
  expectLog("before its queue pairs stood");
  ControlPair pair(10s);
  pair.other.reset();
  std::array<std::byte, 4> block{};
  EXPECT_EQ(pair.control->receive(block).status().code(), ncclRemoteError);
}

/// A peer of the same communicator that says what no end of this library would say.
class IbStranger : public VerbsTest {
 protected:
  /// What the listener of b0 answers to this block.
  Status answerTo(const SideBlock& block) {
    const IbSide side("b", *sysfs);
    plugin::NetHandle handle{};
    void* const listener = side.net->listen(0, handle).value();
    IbHandle said;
    std::memcpy(&said, handle.data(), sizeof(said));
    const Params params = verbsParams();
    const tcp::SocketDevice device = tcp::listSocketDevices(params, "/sys/class/net").value().front();
    tcp::SocketOptions options = tcp::socketOptions(params, device.vendor);
    options.streams = 0;
    options.threads = 0;
    const plugin::NetOpening how = opening();
    tcp::SocketConnector dial(device, said.socket, options, {.commId = how.commId, .secret = how.secret});
    std::optional<tcp::SocketLink> link;
    std::size_t sent = 0;
    Status status;
    EXPECT_TRUE(until([&] {
      if (!link) link = std::move(dial.advance().value());
      const auto* const bytes = reinterpret_cast<const char*>(&block);
      if (link && sent < sizeof(block)) {
        const ssize_t went = ::send(link->control.get(), bytes + sent, sizeof(block) - sent, MSG_NOSIGNAL);
        if (went > 0) sent += static_cast<std::size_t>(went);
      }
      auto made = side.net->accept(listener);
      status = made.status();
      return !status.ok();
    }));
    EXPECT_TRUE(side.net->closeListen(listener).ok());
    return status;
  }
  static SideBlock fair() {
    SideBlock block;
    block.children = 1;
    block.queuePairs = 1;
    block.ports[0].ethernet = 1;
    return block;
  }
};

TEST_F(IbStranger, IsRefusedWithABlockOfAnotherVersion) {
  expectLog("do all ranks use the same library?");
  SideBlock block = fair();
  block.magic += 1;
  EXPECT_EQ(answerTo(block).code(), ncclInternalError);
}

TEST_F(IbStranger, IsRefusedWithNumbersThatCannotBe) {
  allowLog("do all ranks use the same library?");
  SideBlock block = fair();
  for (const std::uint32_t queuePairs : {0u, 129u, 0xffffffffu}) {
    block.queuePairs = queuePairs;
    EXPECT_EQ(answerTo(block).code(), ncclInternalError) << queuePairs;
  }
  block = fair();
  for (const std::uint32_t children : {0u, 9u}) {
    block.children = children;
    EXPECT_EQ(answerTo(block).code(), ncclInternalError) << children;
  }
}

}  // namespace
}  // namespace tutti::net::ib
