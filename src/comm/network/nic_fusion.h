// Which devices of a network become one: ports of one NIC, as far as the settings allow and the network can.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "comm/settings/network_settings.h"
#include "plugin/network/net.h"

namespace tutti::topo {
struct XmlElement;
}

namespace tutti::comm {

/// `machine`: the elements of a topology file with both as <net>; null: only what their bus ids say is known.
NicDistance nicDistance(const plugin::NetProperties& a, const plugin::NetProperties& b,
                        const topo::XmlElement* machine);

/// The groups of NCCL_NET_FORCE_MERGE ("a,b:1;c,d": names, perhaps with a port) as numbers of devices. `label`: whose
/// they are. Errors: ncclInvalidUsage naming what is no device, or stands in two groups.
Result<std::vector<std::vector<int>>> forcedGroups(std::string_view list,
                                                   std::span<const plugin::NetProperties> devices,
                                                   std::string_view label);

/// Asks `net` to fuse: what is forced, then what is near enough; of a group that it refuses no two are tried again. The
/// first `physical` of its devices are no fused ones, what the others are made of stays as it is. Says at INFO what
/// became one. Errors: ncclInvalidUsage where the network refuses, or has not, what is forced.
Status fuseNics(plugin::NetDevices& net, std::span<const plugin::NetProperties> devices, int physical,
                const FusionSettings& settings, const topo::XmlElement* machine);

/// "NET/Socket", as lines of the log begin.
std::string labelOf(const plugin::NetDevices& net);

/// Of a network's devices those to be used: fused ones, whose parts are not, and all others. `physical`: how many are
/// no fused ones. A fused one that does not name its parts is left out. `label`: the network's.
std::vector<int> devicesToUse(std::span<const plugin::NetProperties> devices, int physical, std::string_view label);

/// The names of `group`, with commas.
std::string namesOf(std::span<const plugin::NetProperties> devices, std::span<const int> group);

}  // namespace tutti::comm
