// Topology files cut and put together: what of a file is used, the files of several ranks as one. Pure functions on
// trees that checkTopology() (topology_xml.h) has passed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topo/xml/xml.h"

namespace tutti::topo {

/// A GPU in use. Several ranks may use one device.
struct UsedGpu {
  std::uint64_t busId = 0;
  int rank = 0;
  int partition = -1;  ///< `mlopart` of the <gpu> meant, -1: whichever comes first
};

/// What of a described host its ranks use.
struct UsedLeaves {
  std::vector<UsedGpu> gpus;
  std::vector<std::string> nets;  ///< names
  bool allNets = false;           ///< instead of `nets`
};

/// `system` with what leads to the used leaves only: their <gpu> elements carry `rank`, all others lose it with their
/// branch; <pci>, <cpu> and <nic> without a used leaf are gone. Ranks of one device get a <gpu> each.
XmlElement trimTopology(const XmlElement& system, const UsedLeaves& used);

/// The files of the ranks of a host or of an NVLink domain as one, in the order given: elements that are equal (name
/// and all attributes) become one, others follow behind the children that are there. A <net> is the same whether it has
/// `coll` or not, and has it if all say so.
XmlElement fuseTopologies(std::span<const XmlElement> systems);

/// `hosts` copies of what `system` describes, as one NVLink domain: host h has a host_hash and adapters (guid) of its
/// own, and its ranks continue those of host h-1. Bus ids and indices stay.
/// Errors: ncclInvalidUsage where the copies have more than kMaxTopologyElements together, or more than 2^31 ranks.
Result<XmlElement> copyHosts(const XmlElement& system, int hosts);

/// Writes `hash` into every <cpu>: files do not know on which host they are read.
void setHostHash(XmlElement& system, std::uint64_t hash);

}  // namespace tutti::topo
