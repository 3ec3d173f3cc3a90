#include "topo/machine/path_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>

#include "base/log.h"
#include "base/settings/params.h"

namespace tutti::topo {

std::optional<PathType> parsePathLevel(std::string_view text) {
  constexpr std::array<PathType, 5> kDigits = {PathType::Loc, PathType::Pix, PathType::Pxb, PathType::Phb,
                                               PathType::Sys};
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '9') {
    const auto digit = static_cast<std::size_t>(text[0] - '0');
    return digit < kDigits.size() ? kDigits[digit] : PathType::Sys;
  }
  const std::optional<PathType> type = parsePathType(text);
  return type && *type <= PathType::Sys ? type : std::nullopt;
}

std::optional<int> parseNetDevsPolicy(std::string_view text) {
  constexpr std::string_view kMost = "MAX:";
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  if (upper == "AUTO") return 0;
  if (upper == "ALL") return std::numeric_limits<int>::max();
  if (!upper.starts_with(kMost)) return std::nullopt;
  int most = 0;
  const char* end = upper.data() + upper.size();
  const auto [parsed, error] = std::from_chars(upper.data() + kMost.size(), end, most);
  return error == std::errc() && parsed == end && most > 0 ? std::optional(most) : std::nullopt;
}

PathSettings pathSettings(const Params& params) {
  PathSettings settings;
  settings.p2pLevel = parsePathLevel(params.transports.p2pLevel);
  settings.p2pDisabled = params.transports.p2pDisable;
  settings.shmDisabled = params.topology.shmDisable;
  settings.nvbDisabled = params.topology.nvbDisable;
  settings.pxnDisabled = params.topology.pxnDisable;
  settings.pxnOverC2c = params.topology.pxnC2c;
  settings.gdrOverC2c = params.topology.netGdrC2c;
  settings.gdrLevel = parsePathLevel(params.topology.netGdrLevel);
  settings.gdrRead = static_cast<int>(params.topology.netGdrRead);
  const std::optional<int> netsPerGpu = parseNetDevsPolicy(params.topology.netDevsPolicy);
  if (!netsPerGpu) {
    info(kGraph | kEnv, "NCCL_NETDEVS_POLICY={} is none of AUTO, ALL and MAX:n (n from 1): AUTO is taken",
         params.topology.netDevsPolicy);
  }
  settings.netsPerGpu = netsPerGpu.value_or(0);
  settings.netDisableIntra = params.topology.netDisableIntra;
  settings.p2p.ignore = static_cast<int>(params.topology.ignoreDisabledP2p);
  return settings;
}

}  // namespace tutti::topo
