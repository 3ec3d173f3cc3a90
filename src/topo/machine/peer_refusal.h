// What a driver says of GPUs that cannot access each other directly.
#pragma once

#include <cstdint>
#include <string>

namespace tutti::topo {

/// Two GPUs of one host, in this direction: reading or writing is not possible. By bus id, which all processes of a
/// host see alike; NVML's indices are those of a container.
struct PeerRefusal {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::string reason;  ///< NVML's: "chipset not supported"

  friend bool operator==(const PeerRefusal&, const PeerRefusal&) = default;
};

}  // namespace tutti::topo
