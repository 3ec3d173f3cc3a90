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
#include "transport/net/transport.h"
#include "transport/net/pxn/service.h"
#include "transport/net/pxn/wire.h"
#include "transport/net/test_device.h"

namespace tutti::test {

/// A communicator's secret. Relays listen at a name that follows from it, and tests of several processes run side by
/// side.
inline relay::Secret freshSecret() {
  EXPECT_TRUE(relay::initProofs().ok());
  relay::Secret secret{};
  const relay::Nonce fresh = relay::freshNonce();
  std::memcpy(secret.data(), fresh.data(), fresh.size());
  return secret;
}

/// Rank 1, as others see it that send through it.
struct RelayingRank {
  RelayingRank(FakeKnobs knobs, std::vector<PeerInfo> ranks) : net(std::move(knobs)), relaying(ranks.at(1)) {
    relay::ServiceSetup setup;
    setup.net = &net;
    setup.device = testDevice();
    setup.engine = engine;
    setup.peers = std::move(ranks);
    setup.rank = 1;
    setup.secret = secret;
    routing->route = SendRoute{{.device = 1}, relaying};
    service = relay::RelayService::start(std::move(setup)).value();
  }
  /// Of a transport that sends everything through it.
  NetTransportOptions options() const {
    NetTransportOptions options;
    options.routing = routing;
    options.relaySecret = secret;
    return options;
  }

  FakeNet net;
  PeerInfo relaying;
  std::shared_ptr<FakeRouting> routing = std::make_shared<FakeRouting>();
  relay::Secret secret = freshSecret();
  std::shared_ptr<ProgressEngine> engine = ProgressEngine::create("relay").value();
  std::shared_ptr<relay::RelayService> service;
};

}  // namespace tutti::test
