// What processes of a job tell each other on links that have proved who they are. Layouts in docs/ras.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bootstrap/link/crypto.h"
#include "ras/network/bytes.h"
#include "ras/network/members.h"
#include "ras/report/survey.h"

namespace tutti::ras {

/// The operation of a frame of type Ras.
enum class Message : std::uint8_t {
  Intro = 1,      ///< first word of who connected: a table of its own entry
  KeepAlive = 2,  ///< the hash of the sender's table; answered by the same
  Table = 3,      ///< entries of the sender's table that are new, or all
  Query = 4,      ///< what do your ranks do?
  Answer = 5,
  Goodbye = 6,  ///< the sender's process ends in order; a table of those that it knows to be gone
  Rewire = 7,   ///< the sender watches somebody else from now on
  Heard = 8,    ///< answers a Goodbye: the sender stays, and will tell others
};

/// Bytes of a message at most.
inline constexpr std::uint32_t kMaxMessage = 16U << 20;

/// Entries of a table. Keys of processes are not in the clear: they are sealed with `linkKey`, the key of the process
/// that was connected to.
Bytes encodeTable(std::span<const Member* const> members, const bootstrap::Key& linkKey);
/// Unset where the bytes are no table, or a key in it does not fit its id.
std::optional<std::vector<Member>> decodeTable(std::span<const std::byte> bytes, const bootstrap::Key& linkKey);

/// What a process says when it is asked.
struct Answer {
  std::vector<ProcessId> unresponsive;  ///< whom it watches, and hears nothing of
  std::vector<CommFacts> comms;         ///< its own ranks; `members` where it is to tell them
};
/// Leaves out communicators that would make it too long.
Bytes encodeAnswer(const Answer& answer);
/// Unset where the bytes are no answer: a rank outside of its communicator, a number of things that are not there.
/// Every rank is said to belong to `from`.
std::optional<Answer> decodeAnswer(std::span<const std::byte> bytes, ProcessId from);

/// A key behind a mask that only holders of `sealing` can take away; the same call does and undoes it. `use` is never
/// the same for two keys.
bootstrap::Key masked(const bootstrap::Key& key, const bootstrap::Key& sealing, std::string_view label,
                      std::span<const std::byte> use);

}  // namespace tutti::ras
