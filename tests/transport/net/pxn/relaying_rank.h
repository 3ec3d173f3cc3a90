// A rank that others send through, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "proxy/engine.h"
#include "transport/net/fake_net.h"
#include "transport/net/lane/fake_routing.h"
#include "transport/net/pxn/service.h"
#include "transport/net/pxn/wire.h"
#include "transport/net/test_device.h"
#include "transport/net/transport.h"

namespace tutti::test {

/// A communicator's secret. Relays listen at a name that follows from it, and tests of several processes run side by
/// side.
inline net::pxn::Secret freshSecret() {
  EXPECT_TRUE(net::pxn::initProofs().ok());
  net::pxn::Secret secret{};
  const net::pxn::Nonce fresh = net::pxn::freshNonce();
  std::memcpy(secret.data(), fresh.data(), fresh.size());
  return secret;
}

/// Rank 1, as others see it that send through it.
struct RelayingRank {
  RelayingRank(FakeKnobs knobs, std::vector<topo::PeerInfo> ranks) : net(std::move(knobs)), relaying(ranks.at(1)) {
    net::pxn::ServiceSetup setup;
    setup.net = &net;
    setup.device = testDevice();
    setup.engine = engine;
    setup.peers = std::move(ranks);
    setup.rank = 1;
    setup.secret = secret;
    setup.places = &places;
    routing->route = net::SendRoute{{.device = 1}, relaying};
    service = net::pxn::RelayService::start(std::move(setup)).value();
  }
  /// Of a transport that sends everything through it.
  net::NetTransportOptions options() const {
    net::NetTransportOptions options;
    options.routing = routing;
    options.relaySecret = secret;
    return options;
  }

  UnprovenPlaces places{8};  ///< half of them for local sockets
  FakeNet net;
  topo::PeerInfo relaying;
  std::shared_ptr<FakeRouting> routing = std::make_shared<FakeRouting>();
  net::pxn::Secret secret = freshSecret();
  std::shared_ptr<proxy::ProgressEngine> engine = proxy::ProgressEngine::create("relay").value();
  std::shared_ptr<net::pxn::RelayService> service;
};

}  // namespace tutti::test
