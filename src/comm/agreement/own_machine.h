// What a rank knows of its own host.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "topo/machine/peer_refusal.h"
#include "topo/xml/xml.h"

namespace tutti::gpu {
struct Driver;
}
namespace tutti::topo {
struct NetDeviceFacts;
}

namespace tutti::comm {

struct TopologySettings;

/// What a rank knows of its host's hardware.
struct OwnMachine {
  std::optional<topo::XmlElement> elements;  ///< a <system>; empty: nothing
  std::vector<topo::PeerRefusal> peersRefused;
  std::uint64_t hash = 0;  ///< of both, never 0 if there is something: PeerInfo::machineHash
};

/// With its hash.
OwnMachine ownMachine(topo::XmlElement elements, std::vector<topo::PeerRefusal> peersRefused = {});

/// Whether a failure to make a machine of what was found is one of the communicator: who names a file wants its
/// machine; what detection found that makes none is a reason to do without, having said so. A driver that forbids what
/// the hardware offers is broken for whatever comes after.
bool mustWork(const TopologySettings& settings, Status status);

/// Reads NCCL_TOPO_FILE and asks the machine. On the software GPU there is nothing to ask but SOFTGPU_TOPO, whose NICs
/// stay; elsewhere `nets` takes the place of all NICs that a file names. Errors: ncclInvalidUsage for that file where
/// it is broken, with its line. Without it, what goes wrong is logged, and nothing is known.
Result<OwnMachine> readMachine(const gpu::Driver& driver, const TopologySettings& settings,
                               const std::optional<std::vector<topo::NetDeviceFacts>>& nets);

}  // namespace tutti::comm
