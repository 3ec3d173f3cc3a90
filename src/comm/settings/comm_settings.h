// What communicators take from the environment, as plain values.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "bootstrap/settings.h"
#include "comm/settings/affinity_settings.h"
#include "comm/settings/network_settings.h"
#include "comm/settings/stall_limits.h"
#include "comm/settings/topology_settings.h"
#include "comm/settings/tuning_settings.h"
#include "gpu/kernel_source.h"
#include "nccl.h"
#include "ras/settings.h"
#include "transport/p2p/options.h"
#include "transport/shm/options.h"

namespace tutti {
struct Params;
}

namespace tutti::comm {

/// Bytes of the buffers of one connection, as the user set them; 0: what suits the device.
struct BufferSettings {
  std::uint32_t simple = 0;
  std::uint32_t ll = 0;
  std::uint32_t ll128 = 0;
};

/// A value; constant for the life of a communicator.
struct CommSettings {
  bootstrap::BootstrapSettings bootstrap;
  ras::ProcessSettings ras;
  ncclConfig_t configOverrides;  ///< fields that the environment sets, all others undefined
  std::string netName;           ///< NCCL_NET; goes into the configuration like the overrides, "": not set
  p2p::P2pOptions p2p;
  shm::ShmOptions shm;
  std::string hostId;
  gpu::KernelSource kernels;
  BufferSettings buffers;
  std::string algo;   ///< NCCL_ALGO
  std::string proto;  ///< NCCL_PROTO
  TuningSettings tuning;
  MessageSettings messages;
  TopologySettings topology;
  FusionSettings fusion;
  AffinitySettings affinity;
  GpuDirectSettings gpuDirect;
  CollNetSettings collNet;
  int pxnLevel = 2;                   ///< NCCL_P2P_PXN_LEVEL: whether messages go through other ranks
  std::uint32_t netMessageMb = 4096;  ///< what buffers for messages over a network may take, see networkMeshSlots()
  bool netSharedComms = false;        ///< connections for messages share network connections
  std::uint32_t netSharedSlots = 0;   ///< slots that connections for messages over a network share; 0: each has its own
  StallLimits stall;                  ///< of operations and of stages of an init
  milliseconds reportAfter{0};        ///< a call of all ranks that waits so long names who has not come; 0: never
  std::string launchShape;            ///< "AUTO", "GPU" or "SOFTGPU": whose numbers shape the kernels
  int minChannels = 0;                ///< 0: not set
  int maxChannels = 0;
  bool remoteDomain = true;    ///< NCCL_MEM_SYNC_DOMAIN: kernels run in the remote memory synchronization domain
  bool connectAtInit = false;  ///< NCCL_RUNTIME_CONNECT=0: what collectives may use
  bool checkOverlap = true;    ///< buffers of calls are checked not to overlap but in place
  bool checkCalls = false;     ///< ranks compare their collectives before these are launched
  bool checkPointers = false;  ///< buffers of calls are checked to be memory of the own device
  bool allowVmm = true;        ///< ncclMemAlloc may use virtual memory management
  bool allowRanksOfOneDevice = true;
  bool registersBuffers = true;  ///< ncclCommRegister does something
  bool registersGraphs = true;   ///< buffers of captured operations count as registered
  bool memoryManaged = true;     ///< ncclCommSuspend and its kin may be used
};

/// Picks from `params` what this module needs.
CommSettings commSettingsFrom(const Params& params);

}  // namespace tutti::comm
