#include "comm/diagnosis/message_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "comm/diagnosis/call_log.h"

namespace tutti::comm {

namespace {

constexpr milliseconds kBetweenMessageWords{1000};
/// All ranks together say no more words in a second than these.
constexpr int kWordsPerSecond = 100;
/// Of one rank that leaves.
constexpr std::size_t kLastWords = 8;
/// Of what is heard while nobody calls tick().
constexpr std::size_t kMostMessagesHeard = 4096;

std::span<const std::byte> bytesOf(const MessageWord& word) {
  return std::as_bytes(std::span(&word, 1));
}

std::optional<MessageWord> messageWordFrom(std::span<const std::byte> bytes) {
  MessageWord word;
  if (bytes.size() != sizeof(word)) return std::nullopt;
  std::memcpy(static_cast<void*>(&word), bytes.data(), sizeof(word));
  const std::size_t most = word.kind == MessageWord::Kind::Ask ? MessageWord::kAsked : MessageWord::kEntries;
  const bool sound = word.magic == MessageWord::kMagic && word.kind <= MessageWord::Kind::Verdict && word.n <= most;
  if (!sound) return std::nullopt;
  const bool entries = word.kind != MessageWord::Kind::Ask;
  for (std::size_t i = 0; entries && i < word.n; ++i) {
    if (word.entries[i].way > MessageWay::Received) return std::nullopt;
  }
  return word;
}

/// Of a verdict: `by` tells it, the sizes are its own and the other rank's.
std::string verdictText(int by, const MessageEntry& entry, const MessageExchange::Describe& describe) {
  const bool sent = entry.way == MessageWay::Sent;
  const std::string sender = describe(sent ? by : entry.peer);
  const std::string receiver = describe(sent ? entry.peer : by);
  if (entry.nSizes == 0) {
    return fmt::format(
        "The messages of two ranks do not match. One of the first {} that {} has sent to {} is received with another "
        "length; which one is not kept any more",
        entry.count, sender, receiver);
  }
  return fmt::format(
      "The messages of two ranks do not match. {} sends {} as its {} message to rank {}; {} receives {} as its {} from "
      "rank {}. Both must be of the same number of bytes",
      sender, describeSize(entry.sizes[sent ? 0 : 1]), ordinal(entry.count), sent ? entry.peer : by, receiver,
      describeSize(entry.sizes[sent ? 1 : 0]), ordinal(entry.count), sent ? by : entry.peer);
}

}  // namespace

bool MessageExchange::hear(int rank, std::span<const std::byte> said, bool& verdict) {
  const std::optional<MessageWord> word = messageWordFrom(said);
  if (!word) return false;
  if (heard_.size() >= kMostMessagesHeard) return true;
  due_ = due_ || word->kind != MessageWord::Kind::News;
  verdict = verdict || word->kind == MessageWord::Kind::Verdict;
  heard_.emplace_back(rank, *word);
  return true;
}

std::optional<std::string> MessageExchange::compare(int rank, const MessageEntry& entry, const Self& self) {
  const MessageLog::Comparison result = log_.compare(rank, entry);
  if (!result.mismatch) {
    std::uint64_t& agreed = agreed_[{rank, entry.way}];
    agreed = std::max(agreed, result.agreed);
    const MessageWay own = entry.way == MessageWay::Sent ? MessageWay::Received : MessageWay::Sent;
    if (entry.count > log_.count(rank, own)) {
      ahead_.insert_or_assign({rank, entry.way}, entry);
    } else {
      ahead_.erase({rank, entry.way});
    }
    return std::nullopt;
  }
  MessageWord verdict;
  verdict.kind = MessageWord::Kind::Verdict;
  verdict.n = 1;
  MessageEntry& told = verdict.entries[0];
  told.peer = rank;
  told.way = entry.way == MessageWay::Sent ? MessageWay::Received : MessageWay::Sent;
  told.count = result.mismatch->number;
  told.nSizes = result.mismatch->known ? 2 : 0;
  told.sizes = {result.mismatch->own, result.mismatch->other};
  self.say(bytesOf(verdict));
  return verdictText(self.rank, told, self.describe);
}

void MessageExchange::answer(int rank, const MessageWord& word, const Self& self) const {
  const auto* const last = word.ranks.begin() + word.n;
  if (std::find(word.ranks.begin(), last, self.rank) == last) return;
  MessageWord reply;
  reply.kind = MessageWord::Kind::Answer;
  reply.n = 2;
  reply.to = rank;
  reply.question = word.question;
  reply.entries[0] = log_.entry(rank, MessageWay::Sent);
  reply.entries[1] = log_.entry(rank, MessageWay::Received);
  self.say(bytesOf(reply));
}

std::optional<std::string> MessageExchange::take(int rank, const MessageWord& word, const Self& self) {
  switch (word.kind) {
    case MessageWord::Kind::Ask:
      answer(rank, word, self);
      return std::nullopt;
    case MessageWord::Kind::Verdict:
      if (word.n == 0 || word.entries[0].peer < 0 || word.entries[0].peer >= self.nRanks) return std::nullopt;
      return verdictText(rank, word.entries[0], self.describe);
    case MessageWord::Kind::Answer:
      if (word.to != self.rank) return std::nullopt;
      answers_[rank] = word.question;
      break;
    case MessageWord::Kind::News:
      break;
  }
  for (std::size_t i = 0; i < word.n; ++i) {
    if (word.entries[i].peer != self.rank) continue;
    if (auto found = compare(rank, word.entries[i], self)) return found;
  }
  return std::nullopt;
}

std::optional<std::string> MessageExchange::tick(Time now, const Self& self) {
  const auto heard = std::exchange(heard_, {});
  due_ = false;
  for (const auto& [rank, word] : heard) {
    if (auto found = take(rank, word, self)) return found;
  }
  for (auto next = ahead_.begin(); next != ahead_.end();) {
    const auto [key, entry] = *next++;  // which may go
    if (auto found = compare(key.first, entry, self)) return found;
  }
  const milliseconds between = std::max(kBetweenMessageWords, milliseconds(1000 / kWordsPerSecond) * self.nRanks);
  if (saidAt_ && now - *saidAt_ < between) return std::nullopt;
  saidAt_ = now;
  sayNews(1, self);
  return std::nullopt;
}

void MessageExchange::sayNews(std::size_t mostWords, const Self& self) {
  const std::vector<int> peers = log_.news(told_, lastTold_);
  const std::size_t count = std::min(peers.size(), mostWords * MessageWord::kEntries);
  MessageWord word;
  for (std::size_t i = 0; i < count; ++i) {
    MessageEntry& entry = word.entries[word.n++];
    entry = log_.entry(peers[i], MessageWay::Sent);
    told_[peers[i]] = entry.count;
    lastTold_ = peers[i];
    if (word.n < MessageWord::kEntries && i + 1 < count) continue;
    self.say(bytesOf(word));
    word.n = 0;
  }
}

/// Those with whom some were not compared.
std::vector<int> MessageExchange::open() const {
  std::vector<int> peers = log_.peers();
  std::erase_if(peers, [this](int peer) {
    const auto agreed = [&](MessageWay theirs) {
      const auto found = agreed_.find({peer, theirs});
      return found == agreed_.end() ? 0 : found->second;
    };
    return agreed(MessageWay::Received) >= log_.count(peer, MessageWay::Sent) &&
           agreed(MessageWay::Sent) >= log_.count(peer, MessageWay::Received);
  });
  return peers;
}

void MessageExchange::ask(const Self& self) {
  ++question_;
  std::vector<int> peers = open();
  std::erase(peers, self.rank);
  sayNews(kLastWords, self);
  if (peers.empty() || peers.size() > MessageWord::kAsked) return;
  MessageWord word;
  word.kind = MessageWord::Kind::Ask;
  word.n = static_cast<std::uint8_t>(peers.size());
  word.question = question_;
  word.ranks = {};
  std::copy(peers.begin(), peers.end(), word.ranks.begin());
  self.say(bytesOf(word));
}

bool MessageExchange::answered(const std::function<bool(int)>& gone) const {
  const std::vector<int> peers = open();
  if (peers.size() > MessageWord::kAsked) return true;
  return std::all_of(peers.begin(), peers.end(), [&](int peer) {
    const auto answer = answers_.find(peer);
    return gone(peer) || (answer != answers_.end() && answer->second == question_);
  });
}

}  // namespace tutti::comm
