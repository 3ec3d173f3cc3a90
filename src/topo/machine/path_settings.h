// What the settings say about ways (paths.h).
#pragma once

#include <optional>
#include <string_view>

#include "base/settings/params.h"
#include "topo/machine/paths.h"

namespace tutti::topo {

/// All but what NVML says.
PathSettings pathSettings(const Params& params);

/// PathSettings::netsPerGpu of NCCL_NETDEVS_POLICY, in any case: "AUTO", "ALL", "MAX:n" with n from 1. Empty: anything
/// else.
std::optional<int> parseNetDevsPolicy(std::string_view text);

/// A level of NCCL_P2P_LEVEL or NCCL_NET_GDR_LEVEL: the name of a type up to SYS in upper case, or a digit of older
/// versions: LOC, PIX, PXB, PHB, SYS from 0, SYS above. Empty: anything else, "" included.
std::optional<PathType> parsePathLevel(std::string_view text);

}  // namespace tutti::topo
