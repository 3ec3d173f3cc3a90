#include "ras/registry.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/never_destroyed.h"

namespace tutti::ras {

Registry& Registry::instance() {
  static NeverDestroyed<Registry> registry;
  return registry.get();
}

Listing::~Listing() {
  const std::lock_guard lock(registry_.mutex_);
  registry_.entries_.erase(place_);
}

std::unique_ptr<Listing> Registry::add(const OwnRank& rank, std::vector<CommMember> members,
                                       std::function<RankState()> read) {
  std::list<Listing::Entry> fresh;
  fresh.push_back({rank, std::make_shared<const std::vector<CommMember>>(std::move(members)), std::move(read)});
  std::unique_ptr<Listing> listing(new Listing(*this, fresh.begin()));
  const std::lock_guard lock(mutex_);
  const auto same = std::find_if(entries_.begin(), entries_.end(), [&rank](const Listing::Entry& entry) {
    return entry.rank.comm == rank.comm && entry.rank.size == rank.size;
  });
  if (same != entries_.end()) fresh.front().members = same->members;
  entries_.splice(entries_.end(), fresh);
  return listing;
}

std::vector<CommFacts> Registry::snapshot(ProcessId process) const {
  std::map<CommKey, CommFacts> comms;
  {
    const std::lock_guard lock(mutex_);
    for (const Listing::Entry& entry : entries_) {
      CommFacts& comm = comms[entry.rank.comm];
      comm.key = entry.rank.comm;
      comm.size = entry.rank.size;
      comm.members = entry.members;
      if (comm.name.empty()) comm.name = entry.rank.name;
      if (comm.parent == 0) comm.parent = entry.rank.parent;
      comm.ranks.push_back({entry.rank.rank, process, entry.rank.cudaDevice, entry.rank.nvmlDevice, entry.read()});
    }
  }
  std::vector<CommFacts> list;
  const auto byRank = [](const RankFacts& a, const RankFacts& b) { return a.rank < b.rank; };
  const auto same = [](const RankFacts& a, const RankFacts& b) { return a.rank == b.rank; };
  for (auto& [key, comm] : comms) {
    std::stable_sort(comm.ranks.begin(), comm.ranks.end(), byRank);
    comm.ranks.erase(std::unique(comm.ranks.begin(), comm.ranks.end(), same), comm.ranks.end());
    list.push_back(std::move(comm));
  }
  return list;
}

}  // namespace tutti::ras
