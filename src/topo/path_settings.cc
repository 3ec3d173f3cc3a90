#include "topo/path_settings.h"

#include <array>

namespace tutti {

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
  settings.netDisableIntra = params.topology.netDisableIntra;
  settings.p2p.ignore = static_cast<int>(params.topology.ignoreDisabledP2p);
  return settings;
}

}  // namespace tutti
