// What a communicator counts for its records in a trace.
#pragma once

#include <array>
#include <cstdint>

namespace tutti::trace {

/// Used by the thread that calls.
struct CommCounts {
  std::uint16_t number = 0;  ///< of addComm(); 0: no trace was on when the communicator was made
  std::uint32_t operations = 0;
  std::uint32_t collectives = 0;
  std::uint32_t launches = 0;
  /// Why operations were planned as they were, so that it is put into words once.
  struct Why {
    std::uint64_t of = 0;  ///< a hash of what was asked and chosen
    std::uint32_t text = 0;
  };
  std::array<Why, 64> whys{};
};

}  // namespace tutti::trace
