#include "comm/diagnosis/call_exchange.h"

#include <algorithm>

namespace tutti::comm {

namespace {

constexpr milliseconds kBetweenWords{1000};
/// How long a rank may take to tell what it keeps.
constexpr milliseconds kSearchBound{3000};

TwoRanks named(const CallExchange::Peers& peers, int other) {
  return {peers.describe(peers.self), peers.describe(other)};
}

}  // namespace

bool CallExchange::hear(int rank, std::span<const std::byte> said) {
  const std::optional<CallWord> word = wordFrom(said);
  if (!word) return false;
  const std::lock_guard lock(mutex_);
  heard_.emplace_back(rank, *word);
  return true;
}

bool CallExchange::verified(int self) const {
  const std::lock_guard lock(mutex_);
  return self == 0 || verified_ >= log_.count();
}

bool CallExchange::answered() const {
  const std::lock_guard lock(mutex_);
  return answered_;
}

void CallExchange::sayLast(const Peers& peers) {
  const std::lock_guard lock(mutex_);
  answered_ = false;
  const std::uint64_t count = log_.count();
  if (peers.self == 0 && said_ >= count) return;
  said_ = count;
  CallWord word = wordUpTo(log_, count);
  if (peers.self != 0) {
    word.kind = CallWord::Kind::Ask;
    word.to = 0;
  }
  peers.say(bytesOf(word));
}

void CallExchange::sayNow(Time now, const Peers& peers) {
  saidAt_ = now;
  said_ = log_.count();
  peers.say(bytesOf(wordUpTo(log_, said_)));
}

/// With calls that both have made, so that one answer is enough.
void CallExchange::answer(const CallWord& word, const Peers& peers) const {
  const std::uint64_t own = log_.count();
  CallWord reply = wordUpTo(log_, std::min(own, word.count));
  if (reply.count == 0 && own > 0) reply = wordUpTo(log_, own);
  peers.say(bytesOf(reply));
}

void CallExchange::tellAll(const Peers& peers) const {
  const std::uint64_t own = log_.count();
  const std::uint64_t oldest = own > CallLog::kKept ? own - CallLog::kKept + 1 : 0;
  for (std::uint64_t n = std::min(own, oldest + CallWord::kCalls); n > 0; n = std::min(own, n + CallWord::kCalls)) {
    CallWord part = wordUpTo(log_, n);
    part.kind = n == own ? CallWord::Kind::End : CallWord::Kind::Detail;
    peers.say(bytesOf(part));
    if (n == own) return;
  }
}

std::optional<std::string> CallExchange::take(const Heard& heard, Time now, const Peers& peers) {
  const auto& [rank, word] = heard;
  const bool asked = word.to == peers.self;
  if (asked && word.kind == CallWord::Kind::Ask) answer(word, peers);
  if (asked && word.kind == CallWord::Kind::Tell && (!toldAt_ || now - *toldAt_ >= kBetweenWords)) {
    toldAt_ = now;
    tellAll(peers);
  }
  const bool detail = word.kind >= CallWord::Kind::Detail;
  const Comparison found = compare(log_, word);
  switch (found.result) {
    case Comparison::Result::Differ:
      // The other one, whose operations may all have ended, hears what it is compared with, and finds the same.
      peers.say(bytesOf(wordUpTo(log_, std::min(log_.count(), found.number + CallWord::kCalls - 1))));
      return mismatchText(named(peers, rank), log_, word, found.number);
    case Comparison::Result::Before:
      // Nothing older is kept there.
      if (detail && search_) return lostMismatchText(named(peers, rank), search_->number);
      if (!search_ && !detail) {
        search_ = Search{rank, found.number, now};
        CallWord ask = wordUpTo(log_, log_.count());
        ask.kind = CallWord::Kind::Tell;
        ask.to = rank;
        peers.say(bytesOf(ask));
      }
      return std::nullopt;
    case Comparison::Result::Same:
      if (word.kind == CallWord::Kind::End && search_ && search_->rank == rank)
        return lostMismatchText(named(peers, rank), search_->number);
      if (rank == 0 && !detail) verified_ = std::max(verified_, found.number);
      break;
    case Comparison::Result::Unknown:
      break;
  }
  if (!detail && (word.count > log_.count() || word.captured != log_.captured())) {
    CallWord later = word;
    later.kind = CallWord::Kind::Plain;
    ahead_.insert_or_assign(rank, later);
  }
  return std::nullopt;
}

/// What this rank had not called when it heard of it.
std::optional<std::string> CallExchange::settleLate(Time now, const Peers& peers) {
  if (ahead_.empty()) {
    behindSince_.reset();
    return std::nullopt;
  }
  const std::uint64_t own = log_.count();
  if (const std::pair made(own, log_.captured()); made != compared_) {
    compared_ = made;
    behindSince_.reset();
    const std::map<int, CallWord> ahead = std::exchange(ahead_, {});
    for (const auto& one : ahead) {
      if (auto text = take({one.first, one.second}, now, peers)) return text;
    }
    return std::nullopt;
  }
  const bool behind =
      std::any_of(ahead_.begin(), ahead_.end(), [own](const auto& one) { return one.second.first() > own + 1; });
  if (!behind || said_ >= own) return std::nullopt;
  if (!behindSince_) behindSince_ = now;
  // They know what they have called before, and can compare.
  if (now - *behindSince_ >= kBetweenWords) sayNow(now, peers);
  return std::nullopt;
}

std::optional<std::string> CallExchange::search(Time now, const Peers& peers) {
  if (!search_ || now - search_->since < kSearchBound) return std::nullopt;
  return lostMismatchText(named(peers, search_->rank), search_->number);
}

std::optional<std::string> CallExchange::tick(Time now, const Peers& peers) {
  const std::lock_guard lock(mutex_);
  const std::vector<Heard> heard = std::exchange(heard_, {});
  for (const Heard& one : heard) {
    if (one.first == 0) answered_ = true;
    if (auto text = take(one, now, peers)) return text;
  }
  if (auto text = settleLate(now, peers)) return text;
  if (auto text = search(now, peers)) return text;
  if (peers.self == 0 && log_.count() > said_ && (!saidAt_ || now - *saidAt_ >= kBetweenWords)) sayNow(now, peers);
  return std::nullopt;
}

}  // namespace tutti::comm
