// What tests answer to a network transport in a communicator's stead.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "device/direction.h"
#include "transport/net/lane/peer_farewells.h"
#include "transport/net/lane/routing.h"

namespace tutti::test {

/// Device 0, host memory, nothing routed, but for what a test says.
struct FakeRouting : net::NetRouting {
  std::function<net::EndPlace(const transport::LinkSpec& link, device::Direction direction)> place = {};
  net::NicPlace nic = {};
  std::optional<net::SendRoute> route = {};         ///< of every sender's connection
  mutable std::optional<net::NicPlace> asked = {};  ///< where the receiver's NIC was when routeOf was asked last

  net::EndPlace placeOf(const transport::LinkSpec& link, device::Direction direction) const override {
    return place ? place(link, direction) : net::EndPlace{};
  }
  net::NicPlace nicOf(const transport::LinkSpec&) const override { return nic; }
  bool routed(const transport::LinkSpec&) const override { return route.has_value(); }
  net::SendRoute routeOf(const transport::LinkSpec&, net::NicPlace receiver) const override {
    asked = receiver;
    return route.value();
  }
};

inline std::shared_ptr<const net::NetRouting> routingTo(
    std::function<net::EndPlace(const transport::LinkSpec& link, device::Direction direction)> place) {
  auto routing = std::make_shared<FakeRouting>();
  routing->place = std::move(place);
  return routing;
}

/// Both ends with their slots there.
inline std::shared_ptr<const net::NetRouting> routingWithSlots(net::SlotPlace slots) {
  return routingTo([slots](const transport::LinkSpec&, device::Direction) { return net::EndPlace{0, slots}; });
}

struct FakeFarewells : net::PeerFarewells {
  explicit FakeFarewells(std::function<bool(int)> says) : says_(std::move(says)) {}
  bool hasLeft(int peer) const override { return says_(peer); }

 private:
  std::function<bool(int)> says_;
};

/// Null, as where peers never leave, if there is no function.
inline std::shared_ptr<const net::PeerFarewells> farewells(std::function<bool(int peer)> hasLeft) {
  return hasLeft ? std::make_shared<FakeFarewells>(std::move(hasLeft)) : nullptr;
}

}  // namespace tutti::test
