#include "comm/collnet/reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/ranks/control_channel.h"

namespace tutti::comm {

namespace {

/// As it travels. Trivially copyable.
struct Spoken {
  std::uint8_t failed = 0;
  std::array<char, 1023> why{};  ///< zero terminated
};

}  // namespace

Result<std::vector<RankReason>> gatherReasons(ControlChannel& control, const RankReason& own) {
  std::vector<Spoken> spoken(static_cast<std::size_t>(control.size()));
  Spoken& ours = spoken[static_cast<std::size_t>(control.rank())];
  ours.failed = own.failed ? 1 : 0;
  std::copy_n(own.why.begin(), std::min(own.why.size(), ours.why.size() - 1), ours.why.begin());
  TRY(allGatherValues(control, std::span(spoken)));
  std::vector<RankReason> reasons;
  for (const Spoken& one : spoken) reasons.push_back({one.why.data(), one.failed != 0});
  return reasons;
}

std::string reasonText(const topo::PeerInfo& peer, std::string_view why) {
  return fmt::format("rank {} on host {}: {}", peer.rank, peer.hostName.data(), why);
}

}  // namespace tutti::comm
