// Topology files as a whole: which elements and attributes they have, and whether what is there can be right.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "topo/xml/values.h"
#include "topo/xml/xml.h"

namespace tutti::topo {

/// More than any machine has, few enough to be built in memory.
inline constexpr int kMaxTopologyElements = 1 << 16;
inline constexpr int kMaxTopologyChildren = 4096;

/// Checks `system` and removes what topology files do not have: elements in a place where nobody knows them, with all
/// that is below (one INFO line says how many). What is left:
///   <system> version must be 1
///     <cpu>  numaid; and, where it is there, a well formed host_hash, affinity, familyid, modelid
///       <pci>  busid, unique on its host; below it <pci> and <pcilink target>, or <gpu>, or <nic>
///         <gpu>  dev; <nvlink target count>, <c2c bw count>
///       <nic>  <net>
/// Attributes that detection can fill in (arch, vendor, class, link_speed, link_width, sm, tclass) may be missing:
/// whoever builds a machine asks for them (xml_values.h). Targets may be missing on the machine.
/// Errors: ncclInvalidUsage with file, line, element, attribute and reason.
Status checkTopology(XmlElement& system);

/// parseXml or readXmlFile (`asked` as there), then checkTopology.
Result<XmlElement> parseTopology(std::string_view text, std::string_view origin);
Result<XmlElement> readTopologyFile(const std::string& path, std::string_view asked = {});

}  // namespace tutti::topo
