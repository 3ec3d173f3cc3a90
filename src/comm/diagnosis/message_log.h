// The messages between this rank and each other one, as both ends compare them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/plan/op.h"

namespace tutti::comm {

/// How long a message is, as it travels: its elements, and their type in the highest byte.
using MessageSize = std::uint64_t;
std::uint64_t bytesOf(MessageSize size);
/// "100 ncclFloat32".
std::string describeSize(MessageSize size);

enum class MessageWay : std::uint32_t { Sent, Received };

/// One Send or Recv.
struct Message {
  int peer = -1;
  MessageWay way = MessageWay::Sent;
  MessageSize size = 0;
};
/// Unset where it is none.
std::optional<Message> messageOf(const Op& op);

/// One rank's account of its messages to or from another one, as it travels: the last ones, and a hash of those before.
struct MessageEntry {
  static constexpr std::size_t kSizes = 4;
  std::int32_t peer = -1;
  MessageWay way = MessageWay::Sent;
  std::uint64_t count = 0;
  std::uint64_t before = 0;
  std::uint64_t nSizes = 0;
  std::array<MessageSize, kSizes> sizes{};
};
static_assert(sizeof(MessageEntry) == 64);

/// A message of which the two ends have another length.
struct MessageMismatch {
  std::uint64_t number = 0;  ///< between these two, that way, counted from 1
  bool known = true;         ///< else: one of the first ones up to that is
  MessageSize own = 0;
  MessageSize other = 0;
};

/// Keeps the last sizes and a hash of all, for each peer and way. Takes memory only for the first message of each. Any
/// thread.
class MessageLog {
 public:
  static constexpr std::size_t kKept = 8;

  void add(std::span<const Message> messages);
  /// What goes into a graph is replayed unseen: nothing is told or compared from now on.
  void giveUp();

  /// Peers with messages that way of which more than `told` says were made, the one after `after` first.
  std::vector<int> news(const std::map<int, std::uint64_t>& told, int after) const;
  /// All peers with messages.
  std::vector<int> peers() const;
  std::uint64_t count(int peer, MessageWay way) const;
  MessageEntry entry(int peer, MessageWay way) const;

  struct Comparison {
    std::optional<MessageMismatch> mismatch;
    std::uint64_t agreed = 0;  ///< the first ones up to that are the same
  };
  /// What `sender` says of its messages with this rank, against this rank's.
  Comparison compare(int sender, const MessageEntry& entry) const;

 private:
  struct Line {
    std::uint64_t count = 0;
    std::array<MessageSize, kKept> sizes{};     ///< by number, modulo kKept
    std::array<std::uint64_t, kKept> hashes{};  ///< the same; up to that message
    std::optional<std::uint64_t> hashAt(std::uint64_t n) const;
  };
  const Line* find(int peer, MessageWay way) const;

  mutable std::mutex mutex_;
  std::map<int, std::array<Line, 2>> lines_;
  bool givenUp_ = false;
};

}  // namespace tutti::comm
