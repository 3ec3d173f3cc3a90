#include "topo/detect/pci_facts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace tutti::topo {
namespace {

bool matters(std::uint32_t classCode) {
  constexpr std::uint32_t kClasses[] = {0x02, 0x03, 0x06, 0x08, 0x0b, 0x12};
  return std::find(std::begin(kClasses), std::end(kClasses), classCode >> 16) != std::end(kClasses);
}

}  // namespace

std::vector<PciFacts> pciOfUse(std::vector<PciFacts> all) {
  std::map<std::string, PciFacts> byId;
  for (PciFacts& facts : all) byId.try_emplace(facts.busId, std::move(facts));
  std::set<std::string> wanted;
  for (const auto& [busId, facts] : byId) {
    if (isBridge(facts.classCode) || !matters(facts.classCode)) continue;
    for (auto at = byId.find(busId); at != byId.end() && wanted.insert(at->first).second;) {
      at = byId.find(at->second.parent);
    }
  }
  std::vector<PciFacts> result;
  result.reserve(wanted.size());
  for (const std::string& busId : wanted) result.push_back(std::move(byId.at(busId)));
  return result;
}

}  // namespace tutti::topo
