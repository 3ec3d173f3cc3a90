// On which processors the host's thread for a GPU runs.
#pragma once

#include <sched.h>

#include <cstdint>
#include <optional>
#include <string>

namespace tutti::comm {

struct AffinitySettings;
struct OwnMachine;

struct Affinity {
  std::optional<cpu_set_t> processors;  ///< empty: nobody is bound
  std::string text;                     ///< a line for the log; empty: nothing to say
  std::string complaint;                ///< another, about a setting that cannot be read
};

/// Processors of the NUMA node at which the GPU with this bus id hangs; empty where that is not known.
std::optional<cpu_set_t> processorsNear(const OwnMachine& machine, std::uint64_t busId);

/// Pure. `gpu`: processors near GPU `device`, `job`: those that this process may use; empty: unknown. A list that is
/// none counts as unset.
Affinity affinityFor(const AffinitySettings& settings, int device, const std::optional<cpu_set_t>& gpu,
                     const std::optional<cpu_set_t>& job);

}  // namespace tutti::comm
