#include "bootstrap/link/wire.h"

#include <fmt/core.h>

#include <algorithm>

namespace tutti::bootstrap {
namespace {

struct NoticeHead {
  std::int32_t rank = -1;
  std::int32_t code = 0;
  std::int32_t pid = 0;
  std::uint8_t cause = 0;
  std::array<std::uint8_t, 3> zero{};
  std::uint32_t era = 0;
  FixedText<64> host{};
};

/// A code that came over a wire: anything that is no error of the API reads as ncclRemoteError.
ncclResult_t errorCode(std::int32_t code) {
  if (code <= ncclSuccess || code >= ncclNumResults || code == ncclInProgress) return ncclRemoteError;
  return static_cast<ncclResult_t>(code);
}

/// The same of a cause: anything else reads as what somebody saw.
Cause causeOf(std::uint8_t cause) {
  const bool known =
      cause >= static_cast<std::uint8_t>(Cause::Aborted) && cause <= static_cast<std::uint8_t>(Cause::Died);
  return known ? static_cast<Cause>(cause) : Cause::Observed;
}

}  // namespace

Bytes encodeNotice(const Notice& notice) {
  NoticeHead head{notice.rank, notice.code, notice.pid, static_cast<std::uint8_t>(notice.cause), {}, notice.era, {}};
  setText(head.host, notice.host);
  const std::size_t text = std::min(notice.text.size(), kMaxNoticeText);
  Bytes bytes(sizeof head + text);
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, notice.text.data(), text);
  return bytes;
}

std::optional<Notice> decodeNotice(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(NoticeHead) || bytes.size() > sizeof(NoticeHead) + kMaxNoticeText) return std::nullopt;
  const auto head = *decodeValue<NoticeHead>(bytes.first(sizeof(NoticeHead)));
  const auto text = bytes.subspan(sizeof(NoticeHead));
  return Notice{head.rank,
                errorCode(head.code),
                textOf(head.host),
                std::string(reinterpret_cast<const char*>(text.data()), text.size()),
                causeOf(head.cause),
                head.pid,
                head.era};
}

std::string rankText(int rank, std::string_view host, int pid) {
  std::string text = fmt::format("rank {}", rank);
  if (host.empty()) return text;
  text += fmt::format(" (host {}", host);
  if (pid != 0) text += fmt::format(", pid {}", pid);
  return text + ")";
}

std::string rankListText(std::span<const int> sortedRanks) {
  constexpr std::size_t kMaxRuns = 12;
  std::vector<std::string> runs;
  std::size_t told = 0;
  for (std::size_t i = 0; i < sortedRanks.size() && runs.size() < kMaxRuns;) {
    std::size_t last = i;
    while (last + 1 < sortedRanks.size() && sortedRanks[last + 1] == sortedRanks[last] + 1) ++last;
    if (last == i + 1) last = i;  // two in a row read better as two
    runs.push_back(last == i ? fmt::format("{}", sortedRanks[i])
                             : fmt::format("{}..{}", sortedRanks[i], sortedRanks[last]));
    told += last - i + 1;
    i = last + 1;
  }
  if (told < sortedRanks.size()) runs.push_back(fmt::format("{} more", sortedRanks.size() - told));
  std::string text = sortedRanks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) text += i + 1 == runs.size() ? " and " : ", ";
    text += runs[i];
  }
  return text;
}

}  // namespace tutti::bootstrap
