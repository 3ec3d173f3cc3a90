// How the survivors of a communicator find each other, whatever became of it and of the tree that joined its ranks:
// they form a tree of their own, whose edges are connections that are made now.
#include <algorithm>
#include <cstring>
#include <set>

#include "base/log.h"
#include "bootstrap/contact.h"
#include "bootstrap/joiner.h"
#include "bootstrap/kin.h"
#include "bootstrap/loop/connection_loop.h"

namespace tutti::bootstrap {
namespace {

/// What the first survivor tells all others.
struct Census {
  Key session{};  ///< drawn for this communicator: two of the same survivors have nothing in common
  std::vector<RankEntry> table;
};

Bytes encodeCensus(const Census& census) {
  const auto table = std::as_bytes(std::span(census.table));
  Bytes bytes(census.session.begin(), census.session.end());
  bytes.insert(bytes.end(), table.begin(), table.end());
  return bytes;
}

/// What frames of an exchange are about. Exchanges of other lists of survivors may be under way: theirs have other
/// tags.
struct Tags {
  std::int32_t here = 0;     ///< its sender has come
  std::int32_t missing = 0;  ///< the ranks that its sender, or one behind it, has not heard of
  std::int32_t table = 0;    ///< where ranks listen
};

Tags tagsOf(const Key& key, std::span<const int> survivors) {
  const Key name = deriveKey(key, "tutti survivors", {std::as_bytes(survivors)});
  Tags tags;
  std::memcpy(&tags, name.data(), sizeof(tags));
  return tags;
}

/// How often a rank that waits looks for word of those who are missing.
constexpr milliseconds kListen{100};

/// One exchange, as one of its ranks goes through it.
class Exchange {
 public:
  Exchange(const Joined& joined, std::span<const int> survivors, const Abort& abort, milliseconds reportAfter)
      : joined_(joined), survivors_(survivors), abort_(abort), tags_(tagsOf(joined.key, survivors)) {
    const auto self = std::lower_bound(survivors.begin(), survivors.end(), joined.rank);
    rank_ = static_cast<int>(self - survivors.begin());
    place_ = treePlace(static_cast<int>(survivors.size()), 1, rank_);
    if (reportAfter > milliseconds(0)) askAt_ = Deadline::in(reportAfter);
  }

  int rank() const { return rank_; }
  Result<Census> run(const RankEntry& self);

 private:
  ConnectionLoop& loop() const { return *joined_.loop; }
  int originOf(int newRank) const { return survivors_[static_cast<std::size_t>(newRank)]; }
  std::vector<int> neighbours() const;
  Status connect(int peer) const;
  Status meet(int peer);
  Result<Frame> await(int peer, int tag);
  void attend();
  void ask();
  void hearOfMissing();
  void passOn(const std::vector<int>& missing, int from) const;
  void report();
  Result<Census> gatherAndSpread(const RankEntry& self);
  Result<Bytes> take(int newRank, std::size_t bytes);
  Status give(int newRank, Bytes bytes) const;

  const Joined& joined_;
  std::span<const int> survivors_;
  const Abort& abort_;
  const Tags tags_;
  int rank_ = 0;
  TreePlace place_;
  Deadline deadline_ = Deadline::in(joined_.timeout);
  std::set<int> waitedFor_;                ///< neighbours that have not come yet
  std::set<int> missing_;                  ///< of others, as they say
  bool asked_ = false;                     ///< who is missing
  Deadline askAt_ = Deadline::never();     ///< when to
  Deadline reportAt_ = Deadline::never();  ///< when to say what has been heard of it
};

std::vector<int> Exchange::neighbours() const {
  std::vector<int> peers;
  if (place_.parent >= 0) peers.push_back(originOf(place_.parent));
  for (const RankRange& child : place_.children) peers.push_back(originOf(child.begin));
  return peers;
}

/// The connection also tells of the other's end, so both sides make one.
Status Exchange::connect(int peer) const {
  Contact call;
  call.target = {loop().addressOf(peer), joined_.key, Purpose::Kin, joined_.rank, peer, kMaxRankFrame};
  call.own = joined_.self.listen;
  call.whom = loop().describe(peer);
  call.listening = call.deadline = deadline_;
  call.answer = joined_.handshakeTimeout;
  call.peer = peer;
  call.whateverFailed = true;
  ASSIGN(auto link, makeContact(call, loop(), &abort_));
  loop().addClient(std::move(link), Role::KinOut, peer);
  return Status();
}

/// A survivor that has come is connected to its neighbours, and has told them.
Status Exchange::meet(int peer) {
  TRY(await(peer, tags_.here));
  waitedFor_.erase(peer);
  return Status();
}

Result<Frame> Exchange::await(int peer, int tag) {
  while (!loop().kinArrivesBy(peer, tag, deadline_.earlierOf(Deadline::in(kListen)), abort_)) {
    if (deadline_.expired()) break;
    attend();
  }
  return loop().awaitKin(peer, tag, deadline_, abort_);
}

/// Whoever has waited long asks who is missing by saying whom it misses itself. All who hear that do the same, and pass
/// on what they hear: those who have come form parts of the tree, and all of such a part know the same in the end.
void Exchange::attend() {
  std::erase_if(waitedFor_, [&](int peer) { return loop().hasKin(peer, tags_.here); });
  hearOfMissing();
  if (askAt_.expired()) ask();
  if (reportAt_.expired()) report();
}

void Exchange::ask() {
  if (std::exchange(asked_, true)) return;
  if (!askAt_.isNever()) reportAt_ = Deadline::in(kRollCall);
  askAt_ = Deadline::never();
  passOn({waitedFor_.begin(), waitedFor_.end()}, joined_.rank);
}

void Exchange::hearOfMissing() {
  for (const int peer : neighbours()) {
    while (const auto frame = loop().takeKin(peer, tags_.missing)) {
      ask();
      std::vector<int> ranks(frame->payload.size() / sizeof(int));
      if (!ranks.empty()) std::memcpy(ranks.data(), frame->payload.data(), ranks.size() * sizeof(int));
      missing_.insert(ranks.begin(), ranks.end());
      passOn(ranks, peer);
    }
  }
}

void Exchange::passOn(const std::vector<int>& missing, int from) const {
  const auto bytes = std::as_bytes(std::span(missing));
  const auto payload = std::make_shared<const Bytes>(bytes.begin(), bytes.end());
  for (const int peer : neighbours()) {
    if (peer != from && !waitedFor_.contains(peer)) loop().sendKin(peer, tags_.missing, payload);
  }
}

void Exchange::report() {
  reportAt_ = Deadline::never();
  std::set<int> all = waitedFor_;
  all.insert(missing_.begin(), missing_.end());
  if (all.empty()) return;
  const std::vector<int> ranks(all.begin(), all.end());
  warn(
      "Bootstrap: {} waits in ncclCommShrink for {}: all ranks that stay have to call it, with the same list. Waiting "
      "goes on; TUTTI_SPLIT_REPORT_SEC sets when this is said",
      loop().describe(joined_.rank), ranks.size() == 1 ? loop().describe(ranks.front()) : rankListText(ranks));
}

Result<Bytes> Exchange::take(int newRank, std::size_t bytes) {
  const int peer = originOf(newRank);
  ASSIGN(Frame frame, await(peer, tags_.table));
  if (frame.payload.size() == bytes) return std::move(frame.payload);
  return fail(ncclInternalError, "Bootstrap: {} and rank {} disagree about who survives: {} bytes came instead of {}",
              loop().describe(peer), joined_.rank, frame.payload.size(), bytes);
}

Status Exchange::give(int newRank, Bytes bytes) const {
  if (loop().sendKin(originOf(newRank), tags_.table, std::make_shared<const Bytes>(std::move(bytes)))) return Status();
  return fail(ncclRemoteError, "Bootstrap: {} is gone while the survivors make a new communicator",
              loop().describe(originOf(newRank)));
}

Result<Census> Exchange::gatherAndSpread(const RankEntry& self) {
  Census census;
  census.table.resize(survivors_.size());
  census.table[static_cast<std::size_t>(rank_)] = self;
  const auto part = [&](RankRange ranks) {
    return std::as_writable_bytes(
        std::span(census.table)
            .subspan(static_cast<std::size_t>(ranks.begin), static_cast<std::size_t>(ranks.count())));
  };
  for (const RankRange& child : place_.children) {
    const auto target = part(child);
    ASSIGN(const Bytes bytes, take(child.begin, target.size()));
    std::memcpy(target.data(), bytes.data(), bytes.size());
  }
  if (place_.parent < 0) {
    fillRandom(census.session);
  } else {
    const auto own = part(place_.subtree);
    TRY(give(place_.parent, Bytes(own.begin(), own.end())));
    ASSIGN(const Bytes all, take(place_.parent, sizeof(Key) + survivors_.size() * sizeof(RankEntry)));
    std::memcpy(census.session.data(), all.data(), sizeof(Key));
    std::memcpy(static_cast<void*>(census.table.data()), all.data() + sizeof(Key), all.size() - sizeof(Key));
  }
  for (const RankRange& child : place_.children) TRY(give(child.begin, encodeCensus(census)));
  return census;
}

Result<Census> Exchange::run(const RankEntry& self) {
  const std::vector<int> peers = neighbours();
  waitedFor_.insert(peers.begin(), peers.end());
  const auto forget = [&] {  // what has come too late for an exchange
    for (const int peer : peers) {
      while (loop().takeKin(peer, tags_.missing)) continue;
    }
  };
  forget();
  Status status;
  for (const int peer : peers) {
    if (status.ok()) status = connect(peer);
    if (status.ok()) loop().sendKin(peer, tags_.here, nullptr);
  }
  for (const int peer : peers) {
    if (status.ok()) status = meet(peer);
  }
  Result<Census> census = status.ok() ? gatherAndSpread(self) : Result<Census>(status);
  forget();
  loop().closeKin(peers, census.status());
  return census;
}

}  // namespace

Result<Kin> findSurvivors(const Joined& joined, std::span<const int> survivors, const Abort& abort,
                          milliseconds reportAfter) {
  ASSIGN(Introduction self, introduce(joined));
  Exchange exchange(joined, survivors, abort, reportAfter);
  ASSIGN(Census census, exchange.run(self.entry));
  Kin kin;
  kin.rank = exchange.rank();
  kin.origins.assign(survivors.begin(), survivors.end());
  kin.table = std::move(census.table);
  kin.key = deriveKey(joined.key, "tutti shrink", {std::as_bytes(survivors), census.session});
  kin.listener = std::move(self.listener);
  return kin;
}

}  // namespace tutti::bootstrap
