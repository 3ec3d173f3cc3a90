#include "topo/machine/build.h"

#include <cstdint>
#include <iterator>
#include <set>

#include "base/log.h"
#include "topo/machine/links.h"
#include "topo/machine/pci.h"
#include "topo/xml/values.h"

namespace tutti::topo {

namespace {

Status checkVersion(const XmlElement& system) {
  if (system.name != "system") {
    return fail(ncclInvalidUsage, "{}: a topology file begins with <system>", system.where());
  }
  ASSIGN(const int version, intAttribute(system, "version", {}, {.least = INT32_MIN, .most = INT32_MAX}));
  if (version == 1) return {};
  return fail(ncclInvalidUsage, "{} of the topology has version=\"{}\"; only version 1 is known", system.where(),
              version);
}

Status checkBandwidths(const Machine& machine, const XmlElement& system) {
  std::set<float> bandwidths;
  for (int link = 0; link < machine.linkCount(); ++link) bandwidths.insert(machine.link(link).bandwidth);
  if (std::ssize(bandwidths) <= kMaxBandwidths) return {};
  return fail(ncclInvalidUsage, "{}: its links have {} different bandwidths, more than any machine has ({})",
              system.where(), bandwidths.size(), kMaxBandwidths);
}

}  // namespace

bool isOneSwitch(std::uint64_t parent, std::uint64_t child) {
  constexpr std::uint64_t kGen4 = 0x1000c0101000a000;
  constexpr std::uint64_t kGen5Upper = 0x1000c03010000000;
  constexpr std::uint64_t kGen5Lower = 0x1000c03010001000;
  constexpr std::uint64_t kGen4Mask = 0xffffffffffffff00;
  constexpr std::uint64_t kGen5Mask = 0xfffffffffffff000;
  if ((parent & kGen4Mask) == kGen4) return (child & kGen4Mask) == kGen4;
  return (parent & kGen5Mask) == kGen5Upper && (child & kGen5Mask) == kGen5Lower;
}

Result<Machine> buildMachine(const XmlElement& system) {
  TRY(checkVersion(system));
  ASSIGN(PciTrees trees, buildPciTrees(system));
  TRY(joinNodes(trees, system));
  TRY(checkBandwidths(trees.machine, system));
  trees.machine.sortLinks();
  return std::move(trees.machine);
}

}  // namespace tutti::topo
