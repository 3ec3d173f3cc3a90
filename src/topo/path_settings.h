// What the settings say about ways (paths.h).
#pragma once

#include <optional>
#include <string_view>

#include "base/params.h"
#include "topo/paths.h"

namespace tutti {

/// All but what NVML says.
PathSettings pathSettings(const Params& params);

/// A level of NCCL_P2P_LEVEL or NCCL_NET_GDR_LEVEL: the name of a type up to SYS in upper case, or a digit of older
/// versions: LOC, PIX, PXB, PHB, SYS from 0, SYS above. Empty: anything else, "" included.
std::optional<PathType> parsePathLevel(std::string_view text);

}  // namespace tutti
