// What a root knows and decides: who has come, who disagrees, who is missing. Pure: no sockets, no clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "bootstrap/link/wire.h"
#include "bootstrap/loop/tree.h"

namespace tutti::bootstrap {

/// A frame to send on one of the root's connections.
struct RootSend {
  std::uint64_t to = 0;
  FrameType type = FrameType::Notice;
  Bytes payload;
};

/// Of a root that lives in this process.
Welcome selfIntroduction();

/// What may be wrong with the process of a root itself.
enum class RootTrouble : std::uint8_t { NoDescriptors, ClosedByOthers, NoMemory };

/// What ranks are told of it. `error`: the system's, where there is one.
Notice ownTrouble(const Welcome& self, RootTrouble trouble, int error = 0);

/// The book of one root. Every event returns the frames to send because of it. Once it has failed, everybody who is
/// connected has been told, and whoever still comes is told the same. Not thread-safe.
class RootState {
 public:
  using Conn = std::uint64_t;
  using Sends = std::vector<RootSend>;

  /// `self`: who runs the root (its rank is learned); `session`: goes to every rank.
  RootState(const Welcome& self, std::uint64_t selfProcess, const Key& session);

  Sends onCheckIn(Conn conn, const CheckIn& checkIn);
  Sends onLookup(Conn conn, const Lookup& lookup);
  Sends onDone(Conn conn);
  /// A rank reports its own failure: all others hear of it.
  Sends onNotice(Conn conn, const Notice& notice);
  /// The root's own process, or a rank in it, has failed: the same.
  Sends onFailure(Notice notice) { return failAll(std::move(notice)); }
  /// A connection closed. If its rank was not done, that rank is taken for dead.
  Sends onClosed(Conn conn);
  /// A rank has given no sign of life for so long. Its connection is to be closed.
  Sends onSilence(Conn conn, milliseconds silence);
  /// Time is up: fails naming the ranks that never came, or those that came and never finished. `perhapsBecause`: as
  /// KnownLosses has it, for ranks may not have come because of that.
  Sends onDeadline(double seconds, std::string_view perhapsBecause);
  /// The root's process ends in order, and whoever waits for others does so in vain.
  Sends onProcessEnd(std::string_view perhapsBecause);

  /// What to say of those who have not come. `members`: names of the ranks of a communicator that grows, who are no new
  /// ones; empty: it is made anew.
  std::string absenceText(std::span<const std::string> members) const;
  bool anybodyCame() const { return !ranks_.empty(); }
  /// All ranks have come: nobody new has business here, so a fixed port can be given up.
  bool complete() const { return placed_; }
  bool failed() const { return failure_.has_value(); }
  /// Everybody is served, or everybody who could come has been told of the failure.
  bool finished() const;

 private:
  struct RankRow {
    CheckIn info;
    Conn conn = 0;
    bool done = false;
  };

  /// The ranks that have not come, or, once all have, those that are not done; ascending.
  std::vector<int> missing() const;
  Sends failAll(Notice notice);
  /// Why this rank cannot be let in; unset where it can.
  std::optional<Notice> objection(const CheckIn& checkIn) const;
  Sends welcome(Conn conn, const CheckIn& checkIn);
  Sends placeAll();
  void answerLookups(Sends& sends);
  RankRow* rowOf(Conn conn);
  std::string nameOf(const CheckIn& checkIn) const;
  RankRange segment() const { return rootSegment(first_.nRanks, first_.nRoots, first_.rootIndex); }

  Welcome self_;
  std::uint64_t selfProcess_;
  Key session_;
  CheckIn first_;  ///< what the first rank said; the others must agree
  std::map<int, RankRow> ranks_;
  std::map<Conn, int> rankByConn_;
  std::size_t done_ = 0;          ///< rows that are done
  std::map<Conn, bool> lookups_;  ///< waiting or answered leaders of child segments
  std::size_t lookupsAnswered_ = 0;
  std::size_t turnedAway_ = 0;  ///< connections told of the failure that are no row
  bool placed_ = false;
  std::optional<Notice> failure_;
};

}  // namespace tutti::bootstrap
