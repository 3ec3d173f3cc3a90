// What travels on bootstrap connections: frames and their contents. Layouts in docs/bootstrap.md.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/socket/address.h"
#include "base/status.h"
#include "bootstrap/link/crypto.h"

namespace tutti::bootstrap {

/// Changes whenever a layout here or in handshake.h does.
inline constexpr std::uint16_t kProtocolVersion = 9;

using Bytes = std::vector<std::byte>;
using SharedBytes = std::shared_ptr<const Bytes>;

enum class FrameType : std::uint8_t {
  CheckIn = 1,      ///< rank to root: who I am and where I listen
  Lookup = 2,       ///< segment leader to another segment's root: where does your leader listen?
  Welcome = 3,      ///< root to rank: who runs the root
  Placement = 4,    ///< root to rank: everybody has come; your parent's address
  LeaderFound = 5,  ///< answer to Lookup
  Done = 6,         ///< rank to root: I am connected, watch me no longer
  Notice = 7,       ///< somebody has failed
  Goodbye = 8,      ///< a rank leaves in peace: Farewell, then its account of what it has done
  Message = 9,      ///< send/recv between ranks
  Collective = 10,  ///< one step of a collective along the tree
  Alive = 11,    ///< a sign of life to the neighbours in the tree; tag: silence in ms that its sender takes for death
  State = 12,    ///< how a rank is, for all others; the tag is the rank
  Silence = 13,  ///< of the rank in the tag nothing is heard: what to say of it, a Notice; empty: it is heard again
  Present = 14,  ///< a rank waits in a call of all ranks, for all others; the tag is the rank, the payload the call
  Kin = 15,      ///< between survivors who make a new communicator: who has come, who is missing, where they listen
  Invite = 16,   ///< the unique id by which this communicator is to grow, for all others
  Ras = 17,      ///< between processes that report on the job: `op` says what (ras/network/messages.h)
};
inline constexpr std::uint8_t kLastFrameType = 17;
/// Bytes of a State frame at most.
inline constexpr std::size_t kMaxState = 256;

/// Precedes every payload. Little endian, like every machine that CUDA runs on.
struct FrameHeader {
  std::uint32_t bytes = 0;  ///< of the payload
  std::uint8_t type = 0;    ///< FrameType
  std::uint8_t op = 0;      ///< Collective: which one, to notice ranks out of step
  std::uint16_t zero = 0;
  std::int32_t tag = 0;  ///< Message: the user's tag; Collective: running number
};
static_assert(sizeof(FrameHeader) == 12);

struct Frame {
  FrameHeader header;
  Bytes payload;
  FrameType type() const { return static_cast<FrameType>(header.type); }
};

/// Zero-terminated text of fixed size, cut where too long.
template <std::size_t N>
using FixedText = std::array<char, N>;
template <std::size_t N>
void setText(FixedText<N>& to, std::string_view text) {
  to.fill('\0');
  std::memcpy(to.data(), text.data(), text.size() < N ? text.size() : N - 1);
}
/// Text as it came over a wire: ends within the array even where the sender did not terminate it.
template <std::size_t N>
std::string textOf(const FixedText<N>& from) {
  return std::string(from.data(), strnlen(from.data(), N));
}

struct CheckIn {
  std::int32_t rank = -1;
  std::int32_t nRanks = 0;
  std::int32_t rootIndex = 0;
  std::int32_t nRoots = 0;
  std::int32_t version = 0;  ///< NCCL_VERSION_CODE of the rank's library
  std::int32_t pid = 0;
  std::uint64_t processHash = 0;
  Address listen;
  FixedText<68> host{};
};
static_assert(sizeof(CheckIn) == 128);

struct Lookup {
  std::int32_t rank = -1;
  std::int32_t nRanks = 0;
  std::int32_t nRoots = 0;
};

struct Welcome {
  std::int32_t rank = -1;  ///< in whose process the root runs; -1 while not known
  std::int32_t pid = 0;
  FixedText<68> host{};
};

struct Placement {
  Key session{};   ///< drawn by the root: sets communicators with one NCCL_COMM_ID apart
  Address parent;  ///< unset for a segment's leader
};

/// One row of the table that all ranks hold after joining.
struct RankEntry {
  Address listen;
  std::int32_t pid = 0;
  FixedText<32> host{};
};
static_assert(sizeof(RankEntry) == 64);

/// What a rank says of itself when a communicator is split.
struct Relative {
  std::int32_t number = 0;  ///< of the split, to notice ranks out of step
  std::int32_t color = 0;
  std::int32_t key = 0;
  std::int32_t zero = 0;
  RankEntry entry;  ///< `listen`: for the new communicator
};
static_assert(sizeof(Relative) == 80);

/// How a Goodbye frame begins. The rest is for whoever uses the bootstrap.
struct Farewell {
  std::int32_t rank = -1;
  std::int32_t exited = 0;  ///< 1: its process ends, and it has not been told to leave
};

/// How well a notice knows the cause. One that knows it better replaces what was heard before.
enum class Cause : std::uint8_t {
  Aborted = 1,   ///< a rank gave its part up, and does not know of a reason
  Observed = 2,  ///< what one rank saw of another, or of the network between them
  Failed = 3,    ///< a rank's own failure, in its own words
  Silent = 4,    ///< a process gives no sign of life
  Died = 5,      ///< a process has ended without a word, or is cut off
};

/// Content of a Notice frame.
struct Notice {
  int rank = -1;  ///< who failed; -1 where no single rank is to blame
  ncclResult_t code = ncclRemoteError;
  std::string host;
  std::string text;
  Cause cause = Cause::Observed;
  int pid = 0;            ///< of that rank; 0 where not known
  std::uint32_t era = 0;  ///< how often whoever says so had been resumed
};
inline constexpr std::size_t kMaxNoticeText = 2000;

Bytes encodeNotice(const Notice& notice);
/// Unset where the bytes are no notice.
std::optional<Notice> decodeNotice(std::span<const std::byte> bytes);

/// A trivially copyable value as a payload and back; unset where the size is wrong.
template <class T>
Bytes encodeValue(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return Bytes(bytes.begin(), bytes.end());
}
template <class T>
std::optional<T> decodeValue(std::span<const std::byte> bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
  return value;
}

/// `rank 3 (host gpu07, pid 4711)`; parts that are not known are left out.
std::string rankText(int rank, std::string_view host, int pid = 0);
/// `rank 5`, `ranks 5, 7 and 9..12`; at most a dozen runs, then "and N more".
std::string rankListText(std::span<const int> sortedRanks);

}  // namespace tutti::bootstrap
