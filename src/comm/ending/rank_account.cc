#include "comm/ending/rank_account.h"

#include <algorithm>
#include <cstring>

#include "comm/diagnosis/call_words.h"
#include "comm/launch/launch.h"

namespace tutti::comm {

namespace {

/// As an account travels: this, then its messages.
struct AccountHead {
  std::uint64_t collectives = 0;
  std::uint8_t unfinished = 0;
  std::uint8_t replays = 0;
  std::uint8_t partial = 0;
  std::uint8_t closes = 0;
  std::uint32_t nPeers = 0;
};
struct AccountLine {
  std::int32_t rank = -1;
  std::uint32_t zero = 0;
  MessageCounts messages;
};
static_assert(sizeof(AccountHead) == 16 && sizeof(AccountLine) == 24);

MessageCounts messagesWith(const RankAccount& account, int rank) {
  const auto found = account.messages.find(rank);
  return found == account.messages.end() ? MessageCounts{} : found->second;
}

}  // namespace

RankAccount accountOf(const Launcher& launcher, const CallLog* calls) {
  const LaunchCounts counts = launcher.counts();
  RankAccount account{
      .collectives = counts.collectives, .replays = launcher.everCaptured(), .messages = {}, .calls = {}};
  for (std::size_t rank = 0; rank < counts.messages.size(); ++rank) {
    const MessageCounts& messages = counts.messages[rank];
    if (messages.sent + messages.received > 0) account.messages.emplace(static_cast<int>(rank), messages);
  }
  if (calls != nullptr && calls->count() > 0) {
    const CallWord word = wordUpTo(*calls, calls->count());
    const std::span<const std::byte> bytes = bytesOf(word);
    account.calls.assign(bytes.begin(), bytes.end());
  }
  return account;
}

std::vector<std::byte> encodeAccount(const RankAccount& account) {
  const auto byte = [](bool flag) { return flag ? std::uint8_t{1} : std::uint8_t{0}; };
  const std::size_t nPeers = std::min(account.messages.size(), kMostPeersTold);
  const AccountHead head{account.collectives,   byte(account.unfinished),
                         byte(account.replays), byte(account.partial || nPeers < account.messages.size()),
                         byte(account.closes),  static_cast<std::uint32_t>(nPeers)};
  std::vector<std::byte> bytes(sizeof(head) + nPeers * sizeof(AccountLine));
  std::memcpy(bytes.data(), &head, sizeof(head));
  auto next = account.messages.begin();
  for (std::size_t i = 0; i < nPeers; ++i, ++next) {
    const AccountLine line{next->first, 0, next->second};
    std::memcpy(bytes.data() + sizeof(head) + i * sizeof(line), &line, sizeof(line));
  }
  bytes.insert(bytes.end(), account.calls.begin(), account.calls.end());
  return bytes;
}

std::optional<RankAccount> decodeAccount(std::span<const std::byte> bytes, int self) {
  AccountHead head;
  if (bytes.size() < sizeof(head)) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof(head));
  bytes = bytes.subspan(sizeof(head));
  const std::size_t messages = head.nPeers * sizeof(AccountLine);
  if (bytes.size() != messages && bytes.size() != messages + sizeof(CallWord)) return std::nullopt;
  RankAccount account{
      head.collectives, head.unfinished != 0, head.replays != 0, head.partial != 0, head.closes != 0, {}, {}};
  account.calls.assign(bytes.begin() + static_cast<std::ptrdiff_t>(messages), bytes.end());
  bytes = bytes.first(messages);
  for (; !bytes.empty(); bytes = bytes.subspan(sizeof(AccountLine))) {
    AccountLine line;
    std::memcpy(&line, bytes.data(), sizeof(line));
    if (line.rank == self) account.messages.emplace(line.rank, line.messages);
  }
  return account;
}

Need needFor(const RankAccount& own, int self, const std::optional<RankAccount>& gone, int rank) {
  if (!gone || own.replays || gone->replays) return Need::Unknown;
  if (gone->unfinished || own.collectives > gone->collectives) return Need::Yes;
  if (gone->partial && own.messages.contains(rank) && !gone->messages.contains(self)) return Need::Unknown;
  const MessageCounts ours = messagesWith(own, rank);
  const MessageCounts theirs = messagesWith(*gone, self);
  return ours.received > theirs.sent || ours.sent > theirs.received ? Need::Yes : Need::No;
}

}  // namespace tutti::comm
