// What tests answer to a network transport in a communicator's stead.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "device/direction.h"
#include "transport/net/lane/routing.h"
#include "transport/net/lane/peer_farewells.h"

namespace tutti::test {

/// Device 0, host memory, nothing routed, but for what a test says.
struct FakeRouting : NetRouting {
  std::function<EndPlace(const LinkSpec& link, device::Direction direction)> place = {};
  NicPlace nic = {};
  std::optional<SendRoute> route = {};       ///< of every sender's connection
  mutable std::optional<NicPlace> asked = {};  ///< where the receiver's NIC was when routeOf was asked last

  EndPlace placeOf(const LinkSpec& link, device::Direction direction) const override {
    return place ? place(link, direction) : EndPlace{};
  }
  NicPlace nicOf(const LinkSpec&) const override { return nic; }
  bool routed(const LinkSpec&) const override { return route.has_value(); }
  SendRoute routeOf(const LinkSpec&, NicPlace receiver) const override {
    asked = receiver;
    return route.value();
  }
};

inline std::shared_ptr<const NetRouting> routingTo(
    std::function<EndPlace(const LinkSpec& link, device::Direction direction)> place) {
  auto routing = std::make_shared<FakeRouting>();
  routing->place = std::move(place);
  return routing;
}

/// Both ends with their slots there.
inline std::shared_ptr<const NetRouting> routingWithSlots(SlotPlace slots) {
  return routingTo([slots](const LinkSpec&, device::Direction) { return EndPlace{0, slots}; });
}

struct FakeFarewells : PeerFarewells {
  explicit FakeFarewells(std::function<bool(int)> says) : says_(std::move(says)) {}
  bool hasLeft(int peer) const override { return says_(peer); }

 private:
  std::function<bool(int)> says_;
};

/// Null, as where peers never leave, if there is no function.
inline std::shared_ptr<const PeerFarewells> farewells(std::function<bool(int peer)> hasLeft) {
  return hasLeft ? std::make_shared<FakeFarewells>(std::move(hasLeft)) : nullptr;
}

}  // namespace tutti::test
