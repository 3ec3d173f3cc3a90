#include "ras/network/members.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "base/hash.h"

namespace tutti::ras {

namespace {

RingPlace placeOf(const ProcessFacts& facts) {
  RingPlace place;
  place.family = facts.address.family();
  place.port = facts.address.port();
  place.id = facts.id;
  if (place.family == AF_INET) {
    std::memcpy(place.host.data(), &reinterpret_cast<const sockaddr_in*>(facts.address.raw())->sin_addr, 4);
  } else {
    std::memcpy(place.host.data(), &reinterpret_cast<const sockaddr_in6*>(facts.address.raw())->sin6_addr, 16);
  }
  return place;
}

/// Of what is the same in all tables.
std::uint64_t hashOf(const ProcessFacts& facts) {
  const std::array<std::uint64_t, 4> parts{facts.id, static_cast<std::uint64_t>(facts.state), facts.cudaDevices,
                                           facts.nvmlDevices};
  return hashBytes(std::as_bytes(std::span(parts)));
}

}  // namespace

ProcessId idOf(const bootstrap::Key& key) {
  const bootstrap::Proof proof = bootstrap::authenticate(key, "tutti ras id", {});
  ProcessId id = 0;
  std::memcpy(&id, proof.data(), sizeof(id));
  return id != 0 ? id : 1;
}

Members::Members(Member self) : self_(self.facts.id) {
  static_cast<void>(merge(self));
}

std::optional<Members::Change> Members::merge(const Member& news) {
  const auto known = places_.find(news.facts.id);
  if (known == places_.end()) {
    if (ring_.size() >= kMost) return std::nullopt;
    const auto [place, fresh] = ring_.emplace(placeOf(news.facts), news);
    places_.emplace(news.facts.id, place);
    hash_ ^= hashOf(news.facts);
    return Change{true, news.facts.state != ProcessState::Alive};
  }
  ProcessFacts& facts = known->second->second.facts;
  const ProcessFacts before = facts;
  facts.cudaDevices |= news.facts.cudaDevices;
  facts.nvmlDevices |= news.facts.nvmlDevices;
  if (facts.id != self_) facts.state = std::max(facts.state, news.facts.state);
  hash_ ^= hashOf(before) ^ hashOf(facts);
  const bool worse = facts.state != before.state;
  if (!worse && facts.cudaDevices == before.cudaDevices && facts.nvmlDevices == before.nvmlDevices) return std::nullopt;
  return Change{false, worse};
}

const Member* Members::find(ProcessId id) const {
  const auto place = places_.find(id);
  return place != places_.end() ? &place->second->second : nullptr;
}

std::vector<const Member*> Members::successors() const {
  std::vector<const Member*> found;
  const Ring::const_iterator own = places_.at(self_);
  const auto take = [&found](Ring::const_iterator from, Ring::const_iterator to) {
    for (; from != to; ++from) {
      if (from->second.facts.state == ProcessState::Alive) found.push_back(&from->second);
    }
  };
  take(std::next(own), ring_.end());
  take(ring_.begin(), own);
  return found;
}

std::vector<const Member*> Members::all() const {
  std::vector<const Member*> found;
  for (const auto& [place, member] : ring_) found.push_back(&member);
  return found;
}

}  // namespace tutti::ras
