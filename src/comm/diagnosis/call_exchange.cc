#include "comm/diagnosis/call_exchange.h"

#include <algorithm>

#include "comm/diagnosis/message_exchange.h"

namespace tutti::comm {

namespace {

constexpr milliseconds kBetweenWords{1000};
/// How long a rank may take to tell what it keeps.
constexpr milliseconds kSearchBound{3000};
/// How long it takes at most until one that has called something else is heard of.
constexpr milliseconds kObjection{100};
/// Of an error that may have another cause.
constexpr milliseconds kSuspicion{1000};
/// A rank that has not called more gives no more answers than these.
constexpr std::uint64_t kMostAnswers = 256;
/// Of what is heard while nobody calls tick(), as of a communicator that has failed.
constexpr std::size_t kMostHeard = 4096;

/// Whether a rank that has made `calls` of them can compare them with what was said.
bool covers(const CallWord& said, std::uint64_t calls) {
  return said.count >= calls && said.first() <= calls + 1;
}

MessageExchange::Self selfOf(const CallExchange::Peers& peers) {
  return {peers.self, peers.nRanks, peers.say, peers.describe};
}

}  // namespace

CallExchange::CallExchange() : messages_(std::make_unique<MessageExchange>()) {}

CallExchange::~CallExchange() = default;

MessageLog& CallExchange::messages() {
  return messages_->log();
}

bool CallExchange::hear(int rank, std::span<const std::byte> said) {
  const std::optional<CallWord> word = wordFrom(said);
  const std::lock_guard lock(mutex_);
  if (!word) return messages_->hear(rank, said, told_);
  if (differ_ || heard_.size() >= kMostHeard) return true;
  told_ = told_ || word->kind == CallWord::Kind::Verdict;
  heard_.emplace_back(rank, *word);
  return true;
}

bool CallExchange::due() const {
  const std::lock_guard lock(mutex_);
  return !heard_.empty() || messages_->due();
}

std::size_t CallExchange::heard() const {
  const std::lock_guard lock(mutex_);
  return heard_.size();
}

void CallExchange::hearLast(int rank, std::span<const std::byte> said) {
  const std::optional<CallWord> word = wordFrom(said);
  const std::lock_guard lock(mutex_);
  if (word && !differ_) heard_.emplace_back(rank, *word);
  known_[rank].gone = true;
}

bool CallExchange::comparedBefore(Time now, int self) const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t own = log_.count();
  const std::optional<Time>& since = self == 0 ? saidAt_ : verifiedAt_;
  const bool calls = (self == 0 ? said_.count : verified_) >= own && since && now - *since >= kObjection;
  return (own == 0 || calls) && messages_->settled();
}

bool CallExchange::answered(const Peers& peers) const {
  const std::lock_guard lock(mutex_);
  return asked_ == log_.count() && answeredLocked(peers);
}

bool CallExchange::answeredLocked(const Peers& peers) const {
  const auto gone = [this](int rank) {
    const auto known = known_.find(rank);
    return known != known_.end() && known->second.gone;
  };
  if (!messages_->answered(gone)) return false;
  for (int rank = 0; asked_ > 0 && rank < peers.nRanks; ++rank) {
    if (rank == peers.self) continue;
    const auto known = known_.find(rank);
    if (known == known_.end()) return false;
    const Known& one = known->second;
    if (!one.gone && one.agreed < asked_ && one.answered != question_) return false;
  }
  return true;
}

void CallExchange::askAll(Time now, const Peers& peers) {
  const std::lock_guard lock(mutex_);
  askAllLocked(now, peers);
}

void CallExchange::askAllLocked(Time now, const Peers& peers) {
  asked_ = log_.count();
  ++question_;
  if (asked_ > 0 && (!answeredLocked(peers) || !covers(said_, asked_))) say(asked_, CallWord::Kind::Ask, now, peers);
  messages_->ask(selfOf(peers));
}

bool CallExchange::suspect(Status why, std::string text) {
  const std::lock_guard lock(mutex_);
  if (differ_ || (told_ && watched_)) return true;  // the communicator fails for that
  if (!watched_ || (log_.count() == 0 && messages_->settled())) return false;
  if (!suspicion_) suspicion_ = {why, std::move(text), std::nullopt};
  return true;
}

void CallExchange::watched(bool is) {
  const std::lock_guard lock(mutex_);
  watched_ = is;
}

bool CallExchange::failing() const {
  const std::lock_guard lock(mutex_);
  return differ_ || (told_ && watched_);
}

bool CallExchange::differ() const {
  const std::lock_guard lock(mutex_);
  return differ_;
}

void CallExchange::say(std::uint64_t upTo, CallWord::Kind kind, Time now, const Peers& peers) {
  said_ = wordUpTo(log_, upTo);
  said_.kind = kind;
  said_.question = question_;
  saidAt_ = now;
  answers_ = 0;
  peers.say(bytesOf(said_));
}

/// With calls that both have made, so that one answer is enough for all that ask at once. Where there are none, with
/// those that there are, in answer to this question alone: more may be called between two questions.
void CallExchange::answer(const Heard& asked, Time now, const Peers& peers) {
  const auto& [rank, word] = asked;
  const std::uint64_t own = log_.count();
  if (own >= word.count && word.captured == log_.captured()) {
    if (!covers(said_, word.count)) say(word.count, CallWord::Kind::Plain, now, peers);
    return;
  }
  if (answers_ == kMostAnswers) return;
  ++answers_;
  CallWord answer = wordUpTo(log_, own);
  answer.kind = CallWord::Kind::Answer;
  answer.to = rank;
  answer.question = word.question;
  peers.say(bytesOf(answer));
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

/// This rank's own verdict, which everybody else hears.
std::optional<CallExchange::Finding> CallExchange::found(const CallWord& verdict, const Peers& peers) {
  differ_ = true;
  peers.say(bytesOf(verdict));
  return Finding{Status(ncclInvalidUsage),
                 verdictText({peers.describe(peers.self), peers.describe(verdict.to)}, verdict)};
}

std::optional<CallExchange::Finding> CallExchange::take(const Heard& heard, Time now, const Peers& peers) {
  const auto& [rank, word] = heard;
  if (word.kind == CallWord::Kind::Verdict) {
    if (word.to < 0 || word.to >= peers.nRanks) return std::nullopt;
    differ_ = true;
    return Finding{Status(ncclInvalidUsage), verdictText({peers.describe(rank), peers.describe(word.to)}, word)};
  }
  const bool toThis = word.to == peers.self;
  if (word.kind == CallWord::Kind::Ask) answer(heard, now, peers);
  if (toThis && word.kind == CallWord::Kind::Tell && (!toldAt_ || now - *toldAt_ >= kBetweenWords)) {
    toldAt_ = now;
    tellAll(peers);
  }
  const bool detail = word.kind == CallWord::Kind::Detail || word.kind == CallWord::Kind::End;
  Known& known = known_[rank];
  if (toThis && word.kind == CallWord::Kind::Answer) known.answered = word.question;
  const Comparison result = compare(log_, word);
  switch (result.result) {
    case Comparison::Result::Differ:
      return found(verdictOf(log_, rank, word, result.number), peers);
    case Comparison::Result::Before:
      // Nothing older is kept there.
      if (detail && search_) return found(lostVerdict(rank, search_->number), peers);
      if (!search_ && !detail) {
        search_ = Search{rank, result.number, now};
        CallWord ask = wordUpTo(log_, log_.count());
        ask.kind = CallWord::Kind::Tell;
        ask.to = rank;
        peers.say(bytesOf(ask));
      }
      return std::nullopt;
    case Comparison::Result::Same:
      if (word.kind == CallWord::Kind::End && search_ && search_->rank == rank)
        return found(lostVerdict(rank, search_->number), peers);
      if (detail) break;
      known.agreed = std::max(known.agreed, result.number);
      if (rank == 0 && result.number > verified_) {
        verified_ = result.number;
        verifiedAt_ = now;
      }
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
std::optional<CallExchange::Finding> CallExchange::settleLate(Time now, const Peers& peers) {
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
      if (auto result = take({one.first, one.second}, now, peers)) return result;
    }
    return std::nullopt;
  }
  const bool behind =
      std::any_of(ahead_.begin(), ahead_.end(), [own](const auto& one) { return one.second.first() > own + 1; });
  if (!behind || said_.count >= own) return std::nullopt;
  if (!behindSince_) behindSince_ = now;
  // They know what they have called before, and can compare.
  if (now - *behindSince_ >= kBetweenWords) say(own, CallWord::Kind::Plain, now, peers);
  return std::nullopt;
}

std::optional<CallExchange::Finding> CallExchange::search(Time now, const Peers& peers) {
  if (!search_ || now - search_->since < kSearchBound) return std::nullopt;
  return found(lostVerdict(search_->rank, search_->number), peers);
}

std::optional<CallExchange::Finding> CallExchange::compareMessages(Time now, const Peers& peers) {
  auto result = messages_->tick(now, selfOf(peers));
  if (!result) return std::nullopt;
  differ_ = true;
  return Finding{Status(ncclInvalidUsage), std::move(*result)};
}

std::optional<CallExchange::Finding> CallExchange::settleSuspicion(Time now, const Peers& peers) {
  if (!suspicion_) return std::nullopt;
  if (!suspicion_->since) {
    suspicion_->since = now;
    askAllLocked(now, peers);
  }
  if (search_) return std::nullopt;  // they do differ
  if (!answeredLocked(peers) && now - *suspicion_->since < kSuspicion) return std::nullopt;
  const Suspicion stands = *std::exchange(suspicion_, std::nullopt);
  return Finding{stands.why, stands.text, false};
}

std::optional<CallExchange::Finding> CallExchange::tick(Time now, const Peers& peers) {
  const std::lock_guard lock(mutex_);
  const std::vector<Heard> heard = std::exchange(heard_, {});
  if (differ_) return std::nullopt;
  for (const Heard& one : heard) {
    if (auto result = take(one, now, peers)) return result;
  }
  if (auto result = settleLate(now, peers)) return result;
  if (auto result = compareMessages(now, peers)) return result;
  told_ = false;  // a verdict that names no rank of these is none
  if (auto result = search(now, peers)) return result;
  if (auto result = settleSuspicion(now, peers)) return result;
  if (peers.self == 0 && log_.count() > said_.count && (!saidAt_ || now - *saidAt_ >= kBetweenWords))
    say(log_.count(), CallWord::Kind::Plain, now, peers);
  return std::nullopt;
}

}  // namespace tutti::comm
