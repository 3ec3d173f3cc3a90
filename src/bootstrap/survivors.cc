// How the survivors of a communicator find each other, whatever became of it and of the tree that joined its ranks:
// they form a tree of their own, whose edges are connections that are made now.
#include <algorithm>
#include <cstring>

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

/// One exchange, as one of its ranks goes through it.
class Exchange {
 public:
  Exchange(const Joined& joined, std::span<const int> survivors, const Abort& abort)
      : joined_(joined), survivors_(survivors), abort_(abort) {
    const auto self = std::lower_bound(survivors.begin(), survivors.end(), joined.rank);
    rank_ = static_cast<int>(self - survivors.begin());
    place_ = treePlace(static_cast<int>(survivors.size()), 1, rank_);
    // Exchanges of other lists of survivors may be under way.
    const Key name = deriveKey(joined.key, "tutti survivors", {std::as_bytes(survivors)});
    std::memcpy(&tag_, name.data(), sizeof(tag_));
  }

  int rank() const { return rank_; }
  Result<Census> run(const RankEntry& self);

 private:
  ConnectionLoop& loop() const { return *joined_.loop; }
  int originOf(int newRank) const { return survivors_[static_cast<std::size_t>(newRank)]; }
  std::vector<int> neighbours() const;
  Status connect(int peer) const;
  Result<Census> gatherAndSpread(const RankEntry& self);
  Result<Bytes> take(int newRank, std::size_t bytes) const;
  Status give(int newRank, Bytes bytes) const;

  const Joined& joined_;
  std::span<const int> survivors_;
  const Abort& abort_;
  int rank_ = 0;
  TreePlace place_;
  std::int32_t tag_ = 0;
  Deadline deadline_ = Deadline::in(joined_.timeout);
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
  call.whom = loop().describe(peer);
  call.listening = call.deadline = deadline_;
  call.answer = joined_.handshakeTimeout;
  call.peer = peer;
  call.whateverFailed = true;
  ASSIGN(auto link, makeContact(call, loop(), &abort_));
  loop().addClient(std::move(link), Role::KinOut, peer);
  return Status();
}

Result<Bytes> Exchange::take(int newRank, std::size_t bytes) const {
  const int peer = originOf(newRank);
  ASSIGN(Frame frame, loop().awaitKin(peer, tag_, deadline_, abort_));
  if (frame.payload.size() == bytes) return std::move(frame.payload);
  return fail(ncclInternalError, "Bootstrap: {} and rank {} disagree about who survives: {} bytes came instead of {}",
              loop().describe(peer), joined_.rank, frame.payload.size(), bytes);
}

Status Exchange::give(int newRank, Bytes bytes) const {
  if (loop().sendKin(originOf(newRank), tag_, std::make_shared<const Bytes>(std::move(bytes)))) return Status();
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
  Status status;
  for (const int peer : peers) {
    if (status.ok()) status = connect(peer);
  }
  Result<Census> census = status.ok() ? gatherAndSpread(self) : Result<Census>(status);
  loop().closeKin(peers, census.status());
  return census;
}

}  // namespace

Result<Kin> findSurvivors(const Joined& joined, std::span<const int> survivors, const Abort& abort) {
  ASSIGN(Introduction self, introduce(joined));
  Exchange exchange(joined, survivors, abort);
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
