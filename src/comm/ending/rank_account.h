// What a rank has done by the time it leaves, and whether another one waits for more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "comm/launch/launch_note.h"

namespace tutti::comm {

class CallLog;
class Launcher;

/// What a rank has done by the time it leaves; its farewell carries it to all others.
struct RankAccount {
  std::uint64_t collectives = 0;  ///< that it has launched
  bool unfinished = false;        ///< kernels of its may not have ended
  bool replays = false;           ///< graphs were captured; what they replay is in none of these numbers
  bool partial = false;           ///< messages with some ranks are left out
  bool closes = false;            ///< its connections go with it: no graph uses them
  /// By the rank they went to or came from. Of a rank that is not here there were none, if it is not partial.
  std::map<int, MessageCounts> messages;
  /// Its last collectives, as CallExchange takes them; empty: not told.
  std::vector<std::byte> calls;
};

/// `calls`: null: nothing is told of them.
RankAccount accountOf(const Launcher& launcher, const CallLog* calls = nullptr);
/// A farewell goes to all ranks: of more peers than these it does not tell.
inline constexpr std::size_t kMostPeersTold = 256;
std::vector<std::byte> encodeAccount(const RankAccount& account);
/// What concerns rank `self`, for every rank may tell of many. Unset where the bytes are no account.
std::optional<RankAccount> decodeAccount(std::span<const std::byte> bytes, int self);

/// Whether one rank has launched something that cannot end without another one, which has left. Unknown where graphs
/// are in play, or the other's messages were not told.
enum class Need : std::uint8_t { No, Yes, Unknown };
/// Pure. `own`: of rank `self`; `gone`: of rank `rank`, unset where it gave none.
Need needFor(const RankAccount& own, int self, const std::optional<RankAccount>& gone, int rank);

}  // namespace tutti::comm
