// ncclConfig_t read, checked, completed: user's struct of any version, environment over it, defaults under it.
#pragma once

#include <string>

#include "base/status.h"
#include "nccl.h"

namespace tutti::comm {

/// A complete configuration. `values` has every number set, except for trafficClass, nvlsCTAs, nChannelsPerNetPeer,
/// maxP2pPeers, numRmaSig, hostCftMode and nvlsHostMode, where NCCL_CONFIG_UNDEF_INT means "automatic"; its string
/// members are null: use the owned ones.
struct Config {
  ncclConfig_t values;
  std::string netName;   ///< "" : any
  std::string commName;  ///< "" : none
  bool blocking() const { return values.blocking != 0; }
};

/// A struct with every field undefined, as NCCL_CONFIG_INITIALIZER makes it.
ncclConfig_t undefinedConfig();

/// Reads `user` (null: all defaults) by its own size and version, refuses bad values by name (ncclInvalidArgument),
/// lets the fields of `environment` that are not undefined win, and fills in defaults. Logs what the user set.
Result<Config> parseConfig(const ncclConfig_t* user, const ncclConfig_t& environment);

/// What differs from the defaults: "blocking 0, maxCTAs 8, netName Socket"; "" if nothing does.
std::string describe(const Config& config);

/// Of a child for which the user gave none: that of its parent as it is in effect, with what the environment says now.
Config inheritConfig(const Config& parent, const ncclConfig_t& environment);

}  // namespace tutti::comm
