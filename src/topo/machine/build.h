// From the elements of a topology file to a machine: which element becomes which node, and what joins them.
#pragma once

#include "base/status.h"
#include "topo/machine/machine.h"
#include "topo/xml/xml.h"

namespace tutti::topo {

/// More than any machine has (72 GPUs with as many NICs: 325 nodes); paths take memory with the square of it.
inline constexpr int kMaxNodes = 2048;
/// CPUs that one file may have, and one host of it: all of a host are joined.
inline constexpr int kMaxCpus = 512;
inline constexpr int kMaxCpusOfHost = 64;
/// PCI elements in each other: the length of paths, of which there are as many as pairs of nodes, grows with it.
inline constexpr int kMaxPciDepth = 16;
/// Different bandwidths of links: the search for paths tries each (paths.h).
inline constexpr int kMaxBandwidths = 100;

/// Builds the machine that `system` describes. GPUs without the attribute `rank` are left out with their PCI element;
/// so are nets without `dev` and elements where they have no meaning. CPUs with different `host_hash` are different
/// hosts. docs/topology.md, "Machine". Errors: ncclInvalidUsage with element, line and attribute: not a <system> of
/// version 1, a required attribute missing or no number, a bus id used twice, more than the bounds above.
Result<Machine> buildMachine(const XmlElement& system);

/// Broadcom's switches of one chip show up as two levels; true: `child` is the lower one of `parent`. Device ids as in
/// SwitchFacts.
bool isOneSwitch(std::uint64_t parent, std::uint64_t child);

}  // namespace tutti::topo
