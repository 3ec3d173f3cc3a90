// Where the network reads what a step sends, or writes what it receives: in the slots, or in the application's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "transport/collnet/call.h"
#include "transport/net/lane/memory_registrar.h"

namespace tutti::net {
class UserRegistrations;
}
namespace tutti::plugin {
struct CollNetBuffer;
}

namespace tutti::collnet {

/// Slots of a step, as the host addresses them.
struct StepSlots {
  std::byte* begin = nullptr;  ///< of the window
  void* registration = nullptr;
};

/// One direction of a step. Used by one thread. What it has begun to use it does not give back by itself.
class StepMemory {
 public:
  StepMemory() = default;
  /// `part` of the window lies at `user` or, where that is null, in the slots. `known`: the application's memory as the
  /// network knows it; null: it knows none. Of what the network does not know, it gets the slots.
  StepMemory(const StepSlots& slots, std::byte* user, StepRange part, net::UserRegistrations* known);

  /// A range of the window, for the network.
  plugin::CollNetBuffer at(StepRange range) const;
  /// Between the slots and memory that the network does not know; nothing where it knows it.
  void copyToSlots() const;
  void copyFromSlots() const;
  /// The step is over. `known`: as before.
  void end(net::UserRegistrations* known);

 private:
  StepSlots memory_;  ///< where offset `first_` of the window lies for the network
  std::uint64_t first_ = 0;
  StepRange part_;
  std::byte* apart_ = nullptr;  ///< where the part belongs, which the network does not know
  std::optional<net::RegisteredUse> use_;
};

}  // namespace tutti::collnet
