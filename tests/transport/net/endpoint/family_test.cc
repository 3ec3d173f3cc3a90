// Connections over a network that several communicators use: what they have in common, and which are not among them.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "transport/common/ends.h"
#include "transport/common/peers.h"
#include "transport/common/up.h"
#include "transport/net/endpoint/sharing.h"
#include "transport/net/lane/fake_routing.h"
#include "transport/net/sim_kernels.h"
#include "transport/net/test_device.h"
#include "transport/net/transport.h"

namespace tutti::test {
namespace {

/// One end of a family, in which ranks have the numbers `places`.
net::NetTransportOptions inFamily(std::shared_ptr<net::NetCommons> commons, std::vector<int> places) {
  net::NetTransportOptions options;
  options.sharedSlots = 4;
  options.family = std::make_shared<net::NetFamily>(net::NetFamily{
      .commons = std::move(commons), .places = std::move(places), .farewells = {}, .numbering = "communicator 0x5c"});
  return options;
}

/// A message's connection from rank 0 to rank 1 of a communicator, up.
struct Pair {
  Pair(FakeNet& net, const net::NetTransportOptions& out, const net::NetTransportOptions& in, int channel)
      : here(*testDevice(), net, out), there(*testDevice(), net, in) {
    const auto link = [channel](int self, int peer) {
      return transport::LinkSpec{
          peerOn(*testDevice(), self), peerOn(*testDevice(), peer), channel, {0, 0, 2048}, device::ConnKind::Mesh};
    };
    receiver = there.openRecv(link(1, 0)).value();
    sender = here.openSend(link(0, 1)).value();
    EXPECT_TRUE(sender->connect(receiver->handle()).ok());
    EXPECT_TRUE(receiver->connect(sender->handle()).ok());
    for (int round = 0; round < 500 && !up; ++round) {
      const bool sent = comesUp(*sender).value();
      up = comesUp(*receiver).value() && sent;
    }
    EXPECT_TRUE(up);
  }
  net::NetTransport here, there;
  bool up = false;
  std::unique_ptr<transport::Endpoint> sender, receiver;
};

struct NetFamilies : testing::Test {
  FakeNet net;
  std::shared_ptr<net::NetCommons> out = std::make_shared<net::NetCommons>();
  std::shared_ptr<net::NetCommons> in = std::make_shared<net::NetCommons>();
};

TEST_F(NetFamilies, TakeTheSlotsOfAChannelFromOneRing) {
  const Pair parents(net, inFamily(out, {0, 1}), inFamily(in, {0, 1}), 3);
  const Pair childs(net, inFamily(out, {4, 2}), inFamily(in, {4, 2}), 3);
  EXPECT_EQ(sendConn(*childs.sender).shared.taken, sendConn(*parents.sender).shared.taken);
  EXPECT_EQ(recvConn(*childs.receiver).shared.taken, recvConn(*parents.receiver).shared.taken);
  const Pair strangers(net, inFamily(std::make_shared<net::NetCommons>(), {0, 1}), {}, 3);
  EXPECT_NE(sendConn(*strangers.sender).shared.taken, sendConn(*parents.sender).shared.taken);
}

TEST_F(NetFamilies, HaveNoPartInWhatMaySendThroughAnotherRank) {
  const Pair direct(net, inFamily(out, {0, 1}), inFamily(in, {0, 1}), 3);
  EXPECT_TRUE(direct.sender->shareable());
  EXPECT_TRUE(direct.receiver->shareable());
  auto routing = std::make_shared<FakeRouting>();
  routing->route = net::SendRoute{};  // by itself, in the end
  net::NetTransportOptions options = inFamily(out, {0, 1});
  options.routing = routing;
  const Pair routed(net, options, inFamily(in, {0, 1}), 4);
  EXPECT_FALSE(routed.sender->shareable());
  EXPECT_FALSE(routed.receiver->shareable()) << "both ends must say the same";
}

TEST_F(NetFamilies, KeepTheirNetworkAsLongAsAConnectionLasts) {
  net::NetTransportOptions options = inFamily(out, {0, 1});
  auto owner = std::make_shared<int>();
  const std::weak_ptr<int> kept = owner;
  options.netOwner = std::move(owner);
  std::unique_ptr<transport::Endpoint> sender;
  {
    Pair pair(net, options, inFamily(in, {0, 1}), 3);
    options.netOwner.reset();
    sender = std::move(pair.sender);
  }
  EXPECT_FALSE(kept.expired());
  sender.reset();
  EXPECT_TRUE(kept.expired());
}

}  // namespace
}  // namespace tutti::test
