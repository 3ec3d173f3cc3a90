#include "comm/diagnosis/circles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace tutti::comm {

namespace {

using Time = SteadyClock::time_point;
using Place = CommStanding::Place;

/// Of a path, its first call included: a word's hops behind two of our own.
constexpr std::size_t kMostHops = CircleWord::kHops + 2;

/// What a call that does not run is behind.
struct Front {
  std::size_t which = 0;
  Behind behind = Behind::Stream;
};

bool blocked(const CommStanding& one) {
  return one.steady && (one.place == Place::Blocked || one.place == Place::Absent);
}

bool waits(const CommStanding& one) {
  return one.steady && one.place == Place::Waits;
}

/// How `one`, which does not run, stands behind `other`, which waits; unset: it does not.
std::optional<Behind> standsBehind(const CommStanding& one, const CommStanding& other) {
  if (!waits(other) || other.comm == one.comm) return std::nullopt;
  const bool sameDevice = one.self.device == other.self.device;
  if (one.place == Place::Absent) {
    if (one.thread == 0 || one.thread != other.thread) return std::nullopt;
    if (other.onHost) return Behind::Thread;
    return sameDevice ? std::optional(Behind::Waiting) : std::nullopt;
  }
  if (other.onHost || !sameDevice || other.order == 0 || other.order > one.order) return std::nullopt;
  return one.stream == other.stream ? Behind::Stream : Behind::Device;
}

/// The surest first; of several the one that was launched last.
std::optional<Front> frontOf(std::span<const CommStanding> all, std::size_t which) {
  std::optional<Front> front;
  if (!blocked(all[which])) return front;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::optional<Behind> behind = standsBehind(all[which], all[i]);
    if (!behind) continue;
    const bool surer =
        !front || *behind < front->behind || (*behind == front->behind && all[i].order > all[front->which].order);
    if (surer) front = {i, *behind};
  }
  return front;
}

CircleHop hopOf(const CommStanding& one, Behind behind) {
  CircleHop hop;
  hop.comm = one.comm;
  hop.number = static_cast<std::uint32_t>(one.messages ? 0 : one.number);
  hop.function = one.function;
  hop.behind = behind;
  return hop;
}

void waitsFor(CircleHop& hop, const NamedRank& who) {
  hop.rank = who.rank;
  hop.pid = who.pid;
  hop.device = static_cast<std::uint16_t>(who.device);
  hop.host = {};
  std::memcpy(hop.host.data(), who.host.data(), std::min(who.host.size(), hop.host.size() - 1));
}

/// Whether the call of `one` waits for that of a rank that has said that its own does not run.
bool concerns(const CommStanding& one, int rank, const CircleWord& word) {
  if (!one.messages) return word.number != 0 && word.number <= one.number;
  return std::find(one.waitsFor.begin(), one.waitsFor.end(), rank) != one.waitsFor.end();
}

/// What another rank has said, as old as it is now, as far as it is fresh.
std::vector<CircleHop> agedHops(const CircleBoard::Heard& heard, Time now) {
  std::vector<CircleHop> hops;
  const auto since = std::chrono::duration_cast<milliseconds>(std::max(now - heard.at, Time::duration::zero()));
  for (CircleHop hop : hopsOf(heard.word)) {
    hop.ageMs += static_cast<std::uint32_t>(since.count());
    if (milliseconds(hop.ageMs) > kCircleFresh) break;
    hops.push_back(hop);
  }
  return hops;
}

/// Cuts a path where it comes to a call for the second time. `self`: of the call that it begins with.
CirclePath closedAt(std::vector<CircleHop> hops, std::pair<std::uint64_t, int> self) {
  std::set<std::pair<std::uint64_t, int>> seen{self};
  for (std::size_t i = 0; i < hops.size(); ++i) {
    if (hops[i].rank < 0 || seen.insert({hops[i].comm, hops[i].rank}).second) continue;
    hops.resize(i + 1);
    return {std::move(hops), true};
  }
  if (hops.size() > kMostHops) hops.resize(kMostHops);
  return {std::move(hops), false};
}

class Follower {
 public:
  Follower(std::span<const CommStanding> all, Time now) : all_(all), now_(now) {}

  CirclePath follow(std::size_t which) const {
    const CommStanding& own = all_[which];
    const std::pair self(own.comm, own.self.rank);
    if (waits(own)) {
      CirclePath path = waiting(which, Behind::Stream, self);
      // That it waits for somebody who is behind nothing is no news.
      return path.hops.size() > 1 ? path : CirclePath{};
    }
    const std::optional<Front> front = frontOf(all_, which);
    return front ? waiting(front->which, front->behind, self) : CirclePath{};
  }

 private:
  /// From a call that waits on: by whichever of the ranks that it waits for leads into a circle, or to anything.
  CirclePath waiting(std::size_t which, Behind behind, std::pair<std::uint64_t, int> self) const {
    const CommStanding& own = all_[which];
    CirclePath best{{hopOf(own, behind)}, false};
    for (const auto& [rank, heard] : own.words) {
      if (!concerns(own, rank, heard.word)) continue;
      std::vector<CircleHop> tail = agedHops(heard, now_);
      if (tail.empty()) continue;
      std::vector<CircleHop> hops{hopOf(own, behind)};
      waitsFor(hops.front(), own.describe(rank));
      hops.insert(hops.end(), tail.begin(), tail.end());
      CirclePath path = closedAt(extended(std::move(hops)), self);
      if (path.closed) return path;
      if (path.hops.size() > best.hops.size()) best = std::move(path);
    }
    if (best.hops.front().rank < 0 && !own.waitsFor.empty()) {
      waitsFor(best.hops.front(), own.describe(own.waitsFor.front()));
    }
    return best;
  }

  /// The last one may wait for this very process, whose own part nobody else need have heard of yet.
  std::vector<CircleHop> extended(std::vector<CircleHop> hops) const {
    const CircleHop last = hops.back();
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].comm != last.comm || all_[i].self.rank != last.rank) continue;
      const std::optional<Front> front = frontOf(all_, i);
      if (!front) return hops;
      const CommStanding& other = all_[front->which];
      CircleHop hop = hopOf(other, front->behind);
      // It waits for whomever this path has been through, where there is one.
      const auto known =
          std::find_if(hops.begin(), hops.end(), [&](const CircleHop& h) { return h.comm == other.comm; });
      const bool through = known != hops.end() && known->rank >= 0 && other.words.contains(known->rank) &&
                           concerns(other, known->rank, other.words.at(known->rank).word);
      if (through) waitsFor(hop, other.describe(known->rank));
      hops.push_back(hop);
      return hops;
    }
    return hops;
  }

  std::span<const CommStanding> all_;
  Time now_;
};

std::string callText(const CircleHop& hop) {
  const std::string number = hop.number == 0 ? "" : fmt::format(" number {}", hop.number);
  return fmt::format("{}{} of communicator {:#x}", apiFuncName(hop.function), number, hop.comm);
}

const char* behindText(Behind behind) {
  switch (behind) {
    case Behind::Stream:
      return "is queued behind";
    case Behind::Device:
      return "has not begun, on another stream, and seems to be behind";
    case Behind::Thread:
      return "was not made, for its thread waits in the call of";
    case Behind::Waiting:
      return "was not made, for its thread has made";
  }
  return "";
}

struct Names {
  bool brief = false;
  std::string of(int rank, const char* host, int device, int pid) const {
    if (brief) return fmt::format("rank {} ({}, pid {})", rank, host, pid);
    return fmt::format("rank {} (host {}, device {}, pid {})", rank, host, device, pid);
  }
  std::string of(const CircleHop& hop) const { return of(hop.rank, hop.host.data(), hop.device, hop.pid); }
};

std::string sentence(const CommStanding& own, const CirclePath& path, Names names) {
  const std::string self = names.of(own.self.rank, own.self.host.c_str(), own.self.device, own.self.pid);
  const CircleHop& first = path.hops.front();
  std::string text = own.place == Place::Waits
                         ? fmt::format("{} waits in {}", self, callText(first))
                         : fmt::format("{}, whose call of {} {} {}", self, callText(hopOf(own, Behind::Stream)),
                                       behindText(first.behind), callText(first));
  const auto awaited = [&](const CircleHop& hop) { return hop.rank < 0 ? std::string() : " for " + names.of(hop); };
  const bool lone = path.closed && path.hops.size() == 1;
  if (own.place == Place::Waits) {
    text += awaited(first);
  } else if (first.rank >= 0 && !lone) {
    text += ", which waits" + awaited(first);
  }
  for (std::size_t i = 1; i < path.hops.size(); ++i) {
    const CircleHop& hop = path.hops[i];
    text += fmt::format(", whose call of {} {} {}", i == 1 ? "it" : "that", behindText(hop.behind), callText(hop));
    const bool last = i + 1 == path.hops.size();
    if (hop.rank >= 0 && !(last && path.closed)) text += ", which waits" + awaited(hop);
  }
  return text;
}

std::string remedy(const CirclePath& path, Behind loosest) {
  const bool host = std::any_of(path.hops.begin() + 1, path.hops.end(),
                                [](const CircleHop& hop) { return hop.behind == Behind::Thread; });
  if (loosest == Behind::Waiting) {
    return "If the threads wait for one call before they make the next, they wait for ever: call the communicators in "
           "the same order on all ranks";
  }
  return host ? "Call the communicators in the same order on all ranks; with NCCL_RUNTIME_CONNECT=0 they are connected "
                "at init, and no call waits for that"
              : "Call the communicators in the same order on all ranks, or on streams that do not wait for each other";
}

std::string whole(const CommStanding& own, const CirclePath& path, Names names) {
  std::string text = sentence(own, path, names);
  if (!path.closed) return text;
  const std::size_t ahead = own.place == Place::Waits ? 1 : 0;  // the call itself is behind nothing
  Behind loosest = Behind::Stream;
  for (std::size_t i = ahead; i < path.hops.size(); ++i) loosest = std::max(loosest, path.hops[i].behind);
  const std::string what = remedy(path, loosest);
  if (loosest == Behind::Waiting) return fmt::format("{}. {}", text, what);
  return fmt::format("{}: {}. {}", loosest == Behind::Device ? "it seems to be a circle" : "a circle", text, what);
}

}  // namespace

CirclePath followCircle(std::span<const CommStanding> all, std::size_t which, Time now) {
  return Follower(all, now).follow(which);
}

std::optional<CircleWord> circleWord(std::span<const CommStanding> all, std::size_t which, Time now) {
  if (!blocked(all[which])) return std::nullopt;
  const CirclePath path = followCircle(all, which, now);
  if (path.hops.empty()) return std::nullopt;
  CircleWord word;
  word.number = all[which].messages ? 0 : all[which].number;
  word.nHops = static_cast<std::uint8_t>(std::min(path.hops.size(), word.hops.size()));
  word.closed = path.closed && path.hops.size() <= word.hops.size() ? 1 : 0;
  std::copy_n(path.hops.begin(), word.nHops, word.hops.begin());
  return word;
}

bool sameCircleWord(const CircleWord& a, const CircleWord& b) {
  const auto same = [](const CircleHop& x, const CircleHop& y) {
    return x.comm == y.comm && x.number == y.number && x.rank == y.rank && x.behind == y.behind;
  };
  return a.number == b.number && a.closed == b.closed &&
         std::equal(hopsOf(a).begin(), hopsOf(a).end(), hopsOf(b).begin(), hopsOf(b).end(), same);
}

std::string describeCircle(const CommStanding& own, const CirclePath& path, std::size_t room) {
  if (path.hops.empty()) return {};
  std::string text = whole(own, path, {});
  return text.size() <= room ? text : whole(own, path, {.brief = true});
}

}  // namespace tutti::comm
