#include "bootstrap/root_state.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/host.h"
#include "base/log.h"

namespace tutti::bootstrap {

Welcome selfIntroduction() {
  Welcome self;
  self.pid = ::getpid();
  setText(self.host, hostName());
  return self;
}

Notice ownTrouble(const Welcome& self, RootTrouble trouble, int error) {
  const std::string host = textOf(self.host);
  std::string text;
  switch (trouble) {
    case RootTrouble::NoDescriptors:
      text = fmt::format(
          "Bootstrap: the root in process {} on host {} cannot let ranks in: its process has no file descriptors left; "
          "raise ulimit -n there",
          self.pid, host);
      break;
    case RootTrouble::ClosedByOthers:
      text = fmt::format(
          "Bootstrap: the descriptors of the root in process {} on host {} are no more: {}. Has the program, or a "
          "library in it, closed descriptors that are not its own?",
          self.pid, host, errnoText(error));
      break;
    case RootTrouble::NoMemory:
      text = fmt::format(
          "Bootstrap: the root in process {} on host {} has no host memory left: see ulimit -v and the memory limit of "
          "the container there",
          self.pid, host);
      break;
  }
  return {-1, ncclSystemError, host, std::move(text), Cause::Failed, self.pid};
}

RootState::RootState(const Welcome& self, std::uint64_t selfProcess, const Key& session)
    : self_(self), selfProcess_(selfProcess), session_(session) {}

std::string RootState::nameOf(const CheckIn& c) const {
  return rankText(c.rank, textOf(c.host), c.pid);
}

RootState::RankRow* RootState::rowOf(Conn conn) {
  const auto rank = rankByConn_.find(conn);
  return rank == rankByConn_.end() ? nullptr : &ranks_.at(rank->second);
}

std::optional<Notice> RootState::objection(const CheckIn& c) const {
  const auto usage = [&](std::string text) {
    return Notice{c.rank, ncclInvalidUsage, textOf(c.host), "Bootstrap: " + std::move(text), Cause::Failed, c.pid};
  };
  if (c.nRanks < 1 || c.nRanks > kMaxRanks || c.nRoots < 1 || c.nRoots > c.nRanks || c.rank < 0 || c.rank >= c.nRanks) {
    return usage(
        fmt::format("rank {} of {} with {} ids is out of range (host {})", c.rank, c.nRanks, c.nRoots, textOf(c.host)));
  }
  const CheckIn& first = ranks_.empty() ? c : first_;
  if (c.nRanks != first.nRanks) {
    return usage(fmt::format("mismatched number of ranks: {} says {}, {} says {}; all must pass the same nranks",
                             nameOf(first), first.nRanks, nameOf(c), c.nRanks));
  }
  if (c.nRoots != first.nRoots) {
    return usage(fmt::format("mismatched number of unique ids: {} passes {}, {} passes {}; all must pass the same list",
                             nameOf(first), first.nRoots, nameOf(c), c.nRoots));
  }
  if (c.rootIndex != first.rootIndex || rootOf(c.nRanks, c.nRoots, c.rank) != c.rootIndex) {
    return usage(fmt::format("the lists of unique ids differ: for {} this id is number {}, for {} number {}",
                             nameOf(first), first.rootIndex, nameOf(c), c.rootIndex));
  }
  if (c.version != first.version) {
    return usage(
        fmt::format("mismatched library versions: {} runs {}, {} runs {}; load the same libnccl.so.2 everywhere",
                    nameOf(first), first.version, nameOf(c), c.version));
  }
  if (const auto same = ranks_.find(c.rank); same != ranks_.end()) {
    return usage(fmt::format("duplicate rank: {} and {} both say they are rank {} of {}", nameOf(same->second.info),
                             nameOf(c), c.rank, c.nRanks));
  }
  return std::nullopt;
}

RootState::Sends RootState::failAll(Notice notice) {
  Sends sends;
  if (failure_) return sends;
  failure_ = std::move(notice);
  const Bytes payload = encodeNotice(*failure_);
  for (const auto& [rank, row] : ranks_) {
    if (!row.done && row.conn != 0) sends.push_back({row.conn, FrameType::Notice, payload});
  }
  for (const auto& [conn, answered] : lookups_) {
    if (!answered) sends.push_back({conn, FrameType::Notice, payload});
  }
  // Last: whoever hears it may end its process, and the root lives in this one.
  const auto own = ranks_.find(self_.rank);
  if (own == ranks_.end()) return sends;
  std::stable_partition(sends.begin(), sends.end(), [&](const RootSend& s) { return s.to != own->second.conn; });
  return sends;
}

RootState::Sends RootState::onCheckIn(Conn conn, const CheckIn& checkIn) {
  Sends sends;
  if (!failure_) {
    if (auto why = objection(checkIn)) sends = failAll(std::move(*why));
  }
  if (failure_) {
    ++turnedAway_;
    sends.push_back({conn, FrameType::Notice, encodeNotice(*failure_)});
    return sends;
  }
  return welcome(conn, checkIn);
}

RootState::Sends RootState::welcome(Conn conn, const CheckIn& checkIn) {
  Sends sends;
  if (ranks_.empty()) first_ = checkIn;
  ranks_[checkIn.rank] = {checkIn, conn, false};
  rankByConn_[conn] = checkIn.rank;
  if (self_.rank < 0 && checkIn.processHash == selfProcess_) {
    self_.rank = checkIn.rank;
    // Ranks that came earlier must learn whose death the end of this root would mean.
    for (const auto& [rank, row] : ranks_) sends.push_back({row.conn, FrameType::Welcome, encodeValue(self_)});
  } else {
    sends.push_back({conn, FrameType::Welcome, encodeValue(self_)});
  }
  answerLookups(sends);
  if (ranks_.size() != static_cast<std::size_t>(segment().count())) return sends;
  Sends places = placeAll();
  sends.insert(sends.end(), std::make_move_iterator(places.begin()), std::make_move_iterator(places.end()));
  return sends;
}

RootState::Sends RootState::placeAll() {
  placed_ = true;
  Sends sends;
  for (const auto& [rank, row] : ranks_) {
    Placement placement{session_, {}};
    if (rank != segment().begin) {
      placement.parent = ranks_.at(treePlace(first_.nRanks, first_.nRoots, rank).parent).info.listen;
    }
    sends.push_back({row.conn, FrameType::Placement, encodeValue(placement)});
  }
  return sends;
}

void RootState::answerLookups(Sends& sends) {
  if (ranks_.empty()) return;
  const auto leader = ranks_.find(segment().begin);
  if (leader == ranks_.end()) return;
  for (auto& [conn, answered] : lookups_) {
    if (answered) continue;
    answered = true;
    ++lookupsAnswered_;
    sends.push_back({conn, FrameType::LeaderFound, encodeValue(leader->second.info.listen)});
  }
}

RootState::Sends RootState::onLookup(Conn conn, const Lookup&) {
  if (failure_) return {{conn, FrameType::Notice, encodeNotice(*failure_)}};
  Sends sends;
  lookups_[conn] = false;
  answerLookups(sends);
  return sends;
}

RootState::Sends RootState::onDone(Conn conn) {
  RankRow* row = rowOf(conn);
  if (row == nullptr || row->done) return {};
  row->done = true;
  ++done_;
  return {};
}

RootState::Sends RootState::onNotice(Conn conn, const Notice& notice) {
  const RankRow* row = rowOf(conn);
  return row == nullptr ? Sends() : failAll(notice);
}

RootState::Sends RootState::onClosed(Conn conn) {
  if (const auto lookup = lookups_.find(conn); lookup != lookups_.end()) {
    if (!lookup->second) lookups_.erase(lookup);
    return {};
  }
  RankRow* row = rowOf(conn);
  if (row == nullptr) return {};
  row->conn = 0;
  if (row->done) return {};
  return failAll({row->info.rank, ncclRemoteError, textOf(row->info.host),
                  fmt::format("Bootstrap: {} died or gave up while the communicator was being made: its connection to "
                              "the root closed; look for the first error on that rank",
                              nameOf(row->info)),
                  Cause::Observed, row->info.pid});
}

RootState::Sends RootState::onSilence(Conn conn, milliseconds silence) {
  const RankRow* row = rowOf(conn);
  if (row == nullptr || row->done) return {};
  return failAll({row->info.rank, ncclRemoteError, textOf(row->info.host),
                  fmt::format("Bootstrap: {} has given the root no sign of life for {} ms while the communicator was "
                              "being made: is its process stopped (SIGSTOP, a debugger), its host frozen, or the "
                              "network cut? TUTTI_PEER_TIMEOUT_MS sets the time allowed",
                              nameOf(row->info), silence.count()),
                  Cause::Silent, row->info.pid});
}

RootState::Sends RootState::onProcessEnd(std::string_view perhapsBecause) {
  if (finished()) return {};
  const std::string host = textOf(self_.host);
  const std::string who = self_.rank >= 0
                              ? rankText(self_.rank, host, self_.pid)
                              : fmt::format("process {} on host {}, which made the unique id,", self_.pid, host);
  return failAll(
      {self_.rank, ncclRemoteError, host,
       fmt::format("Bootstrap: {} left while the communicator was being made, for its process ended by exit(){}", who,
                   perhapsBecause),
       // Where it may follow from another failure, it is no better known than an abort.
       perhapsBecause.empty() ? Cause::Failed : Cause::Aborted, self_.pid});
}

std::vector<int> RootState::missing() const {
  std::vector<int> ranks;
  for (int rank = segment().begin; rank < segment().end; ++rank) {
    const auto row = ranks_.find(rank);
    if (row == ranks_.end() || (placed_ && !row->second.done)) ranks.push_back(rank);
  }
  return ranks;
}

std::string RootState::absenceText(std::span<const std::string> members) const {
  const std::vector<int> ranks = missing();
  if (members.empty()) {
    return fmt::format(
        "Stalled init: the bootstrap waits for {} of {}: were all processes started, with the same unique id? Waiting "
        "goes on; TUTTI_STALL_SEC sets when this is said",
        rankListText(ranks), first_.nRanks);
  }
  const bool lone = ranks.size() == 1 && static_cast<std::size_t>(ranks.front()) < members.size();
  return fmt::format(
      "Bootstrap: ncclCommGrow waits for {}: all members have to call it, and who is new (rank {} and above) with the "
      "unique id. Waiting goes on; TUTTI_SPLIT_REPORT_SEC sets when this is said",
      lone ? members[static_cast<std::size_t>(ranks.front())] : rankListText(ranks), members.size());
}

RootState::Sends RootState::onDeadline(double seconds, std::string_view perhapsBecause) {
  if (failure_ || ranks_.empty()) return {};
  const std::vector<int> missing = this->missing();
  const std::string names = missing.size() == 1 && placed_ ? nameOf(ranks_.at(missing[0]).info) : rankListText(missing);
  return failAll(
      {missing.size() == 1 ? missing[0] : -1, ncclRemoteError, "",
       fmt::format("Bootstrap: {} of {} {} within {:.1f} s: were all processes started, with the same unique "
                   "id? TUTTI_BOOTSTRAP_TIMEOUT_SEC sets the time allowed{}",
                   names, first_.nRanks, placed_ ? "came but did not finish connecting" : "did not come", seconds,
                   perhapsBecause)});
}

bool RootState::finished() const {
  if (ranks_.empty() && !failure_) return false;
  if (failure_) {
    std::size_t open = 0;
    for (const auto& [rank, row] : ranks_) open += row.conn != 0 && !row.done ? 1 : 0;
    return open == 0 && ranks_.size() + turnedAway_ >= static_cast<std::size_t>(std::max(first_.nRanks, 1));
  }
  if (!placed_) return false;
  return done_ == ranks_.size() && lookupsAnswered_ >= childSegments(first_.nRoots, first_.rootIndex).size();
}

}  // namespace tutti::bootstrap
