// What the whole process has in common: settings as plain values, read once, and the library's start.
#pragma once

#include <cstdint>
#include <string>

#include "base/environment.h"
#include "base/status.h"
#include "bootstrap/settings.h"
#include "gpu/driver.h"
#include "nccl.h"
#include "transport/p2p/p2p_transport.h"

namespace tutti {

/// The environment's part of how communicators are made. Constant once read.
struct Runtime {
  BootstrapSettings bootstrap;
  ncclConfig_t configOverrides;        ///< fields that the environment sets, all others undefined
  std::string netName;                 ///< what configOverrides.netName points at
  P2pOptions p2p;
  std::string hostId;                  ///< NCCL_HOSTID
  std::string hostKernelsPath;         ///< TUTTI_KERNELS_PATH
  std::uint32_t bufferBytes = 0;       ///< NCCL_BUFFSIZE; 0: what suits the device
  int minChannels = 0;                 ///< 0: not set
  int maxChannels = 0;
  bool allowVmm = true;                ///< NCCL_CUMEM_ENABLE
  bool allowRanksOfOneDevice = false;  ///< NCCL_MULTI_RANK_GPU_ENABLE, for ncclCommInitAll

  Runtime();
  Runtime(const Runtime&) = delete;
};

/// Reads the settings that communicators take from `environment`.
void readRuntime(const EnvReader& environment, Runtime& runtime);

/// The process's settings, read at the first call. Any thread.
const Runtime& processRuntime();

/// "NCCL version 2.30.7+cuda13.0".
std::string versionText();

}  // namespace tutti
