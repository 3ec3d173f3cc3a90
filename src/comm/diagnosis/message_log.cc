#include "comm/diagnosis/message_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"

namespace tutti::comm {

namespace {

constexpr unsigned kTypeShift = 56;

}  // namespace

std::uint64_t bytesOf(MessageSize size) {
  return (size & ((1ULL << kTypeShift) - 1)) * datatypeBytes(static_cast<ncclDataType_t>(size >> kTypeShift));
}

std::string describeSize(MessageSize size) {
  return fmt::format("{} {}", size & ((1ULL << kTypeShift) - 1),
                     datatypeName(static_cast<ncclDataType_t>(size >> kTypeShift)));
}

std::optional<Message> messageOf(const Op& op) {
  if (!isPointToPoint(op.func)) return std::nullopt;
  return Message{op.root, op.func == ApiFunc::Send ? MessageWay::Sent : MessageWay::Received,
                 static_cast<std::uint64_t>(op.datatype) << kTypeShift | op.count};
}

std::optional<std::uint64_t> MessageLog::Line::hashAt(std::uint64_t n) const {
  if (n == 0) return 0;
  return n <= count && n + kKept > count ? std::optional(hashes[n % kKept]) : std::nullopt;
}

void MessageLog::add(std::span<const Message> messages) {
  const std::lock_guard lock(mutex_);
  if (givenUp_) return;
  for (const Message& message : messages) {
    Line& line = lines_[message.peer][static_cast<std::size_t>(message.way)];
    const std::uint64_t before = line.hashAt(line.count).value_or(0);
    ++line.count;
    line.sizes[line.count % kKept] = message.size;
    line.hashes[line.count % kKept] = hashWord(bytesOf(message.size), before);
  }
}

void MessageLog::giveUp() {
  const std::lock_guard lock(mutex_);
  givenUp_ = true;
  lines_.clear();
}

std::vector<int> MessageLog::news(const std::map<int, std::uint64_t>& told, int after) const {
  const std::lock_guard lock(mutex_);
  std::vector<int> found;
  if (givenUp_) return found;
  for (const auto& [peer, lines] : lines_) {
    const auto known = told.find(peer);
    if (lines[0].count > (known == told.end() ? 0 : known->second)) found.push_back(peer);
  }
  std::rotate(found.begin(), std::upper_bound(found.begin(), found.end(), after), found.end());
  return found;
}

std::vector<int> MessageLog::peers() const {
  const std::lock_guard lock(mutex_);
  std::vector<int> found;
  if (givenUp_) return found;
  for (const auto& line : lines_) found.push_back(line.first);
  return found;
}

const MessageLog::Line* MessageLog::find(int peer, MessageWay way) const {
  const auto found = lines_.find(peer);
  return givenUp_ || found == lines_.end() ? nullptr : &found->second[static_cast<std::size_t>(way)];
}

std::uint64_t MessageLog::count(int peer, MessageWay way) const {
  const std::lock_guard lock(mutex_);
  const Line* const line = find(peer, way);
  return line == nullptr ? 0 : line->count;
}

MessageEntry MessageLog::entry(int peer, MessageWay way) const {
  const std::lock_guard lock(mutex_);
  MessageEntry entry;
  entry.peer = peer;
  entry.way = way;
  const Line* const line = find(peer, way);
  if (line == nullptr) return entry;
  entry.count = line->count;
  entry.nSizes = std::min<std::uint64_t>(line->count, MessageEntry::kSizes);
  const std::uint64_t first = line->count - entry.nSizes + 1;
  entry.before = line->hashAt(first - 1).value_or(0);
  for (std::uint64_t i = 0; i < entry.nSizes; ++i) entry.sizes[i] = line->sizes[(first + i) % kKept];
  return entry;
}

MessageLog::Comparison MessageLog::compare(int sender, const MessageEntry& entry) const {
  const std::lock_guard lock(mutex_);
  const Line* const line = find(sender, entry.way == MessageWay::Sent ? MessageWay::Received : MessageWay::Sent);
  if (line == nullptr || entry.nSizes > MessageEntry::kSizes || entry.nSizes > entry.count) return {};
  const std::uint64_t before = entry.count - entry.nSizes;
  const std::uint64_t both = std::min(line->count, entry.count);
  if (both < before) return {};
  const std::optional<std::uint64_t> ours = line->hashAt(before);
  if (!ours) return {};
  if (*ours != entry.before) return {MessageMismatch{before, false}, 0};
  for (std::uint64_t n = before + 1; n <= both; ++n) {
    if (n + kKept <= line->count) return {};
    const MessageSize own = line->sizes[n % kKept];
    const MessageSize other = entry.sizes[n - before - 1];
    if (bytesOf(own) != bytesOf(other)) return {MessageMismatch{n, true, own, other}, 0};
  }
  return {std::nullopt, both};
}

}  // namespace tutti::comm
