// Ranks compare how long the messages between them are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "comm/diagnosis/message_log.h"

namespace tutti::comm {

/// What ranks tell one another of their messages, as it travels.
struct MessageWord {
  enum class Kind : std::uint8_t {
    News,     ///< the latest messages to some ranks
    Ask,      ///< the ranks that are listed are to say what they have sent to this one, and received from it
    Answer,   ///< that, to rank `to`
    Verdict,  ///< one message is of another length on its two ends: the entry is told by one of them
  };
  static constexpr std::uint32_t kMagic = 0x3147534d;
  static constexpr std::size_t kEntries = 3;
  static constexpr std::size_t kAsked = 48;
  std::uint32_t magic = kMagic;
  Kind kind = Kind::News;
  std::uint8_t n = 0;  ///< of entries, or of ranks
  std::uint16_t unused = 0;
  std::int32_t to = -1;
  std::uint32_t question = 0;
  union {
    std::array<MessageEntry, kEntries> entries;
    std::array<std::int32_t, kAsked> ranks;
  };
  MessageWord() : entries{} {}
};
static_assert(sizeof(MessageWord) == 208);

/// Of one communicator, as a part of CallExchange, which has a lock for all but the log. Each rank says once a second
/// to whom it has sent what, a few ranks at a time; who leaves asks those that it had messages with.
class MessageExchange {
 public:
  using Time = SteadyClock::time_point;
  using Say = std::function<void(std::span<const std::byte>)>;
  using Describe = std::function<std::string(int)>;
  struct Self {
    int rank = 0;
    int nRanks = 1;
    const Say& say;
    const Describe& describe;
  };

  MessageLog& log() { return log_; }
  const MessageLog& log() const { return log_; }

  /// Takes what another rank says of its messages, and only that. `verdict` becomes true where that is one.
  bool hear(int rank, std::span<const std::byte> said, bool& verdict);
  /// Whether somebody may wait for what tick() makes of that.
  bool due() const { return due_; }
  /// Says and compares what is due. A text that names both ranks and lengths where a message has two.
  std::optional<std::string> tick(Time now, const Self& self);
  /// Those with whom messages were not compared are to say what they have of them.
  void ask(const Self& self);
  /// Whether all messages were compared.
  bool settled() const { return open().empty(); }
  /// Whether they have, but for those that `gone` says have left; or there were too many to ask.
  bool answered(const std::function<bool(int)>& gone) const;

 private:
  std::optional<std::string> take(int rank, const MessageWord& word, const Self& self);
  std::optional<std::string> compare(int rank, const MessageEntry& entry, const Self& self);
  void answer(int rank, const MessageWord& word, const Self& self) const;
  void sayNews(std::size_t mostWords, const Self& self);
  std::vector<int> open() const;

  MessageLog log_;
  std::vector<std::pair<int, MessageWord>> heard_;
  bool due_ = false;                                            ///< not all of it is news
  std::map<std::pair<int, MessageWay>, MessageEntry> ahead_;    ///< of which more was told than was called here
  std::map<std::pair<int, MessageWay>, std::uint64_t> agreed_;  ///< by peer and what it did
  std::map<int, std::uint64_t> told_;                           ///< messages to a rank that it has been told of
  std::map<int, std::uint32_t> answers_;                        ///< the last question that a rank has answered
  std::uint32_t question_ = 0;
  int lastTold_ = -1;
  std::optional<Time> saidAt_;
};

}  // namespace tutti::comm
