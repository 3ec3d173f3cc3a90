// What the environment says about GPUDirect RDMA, as plain values.
#pragma once

#include <optional>

#include "base/settings/params.h"
#include "topo/machine/path_type.h"

namespace tutti::comm {

/// What the environment says, besides what ways between GPU and NIC depend on.
struct GpuDirectSettings {
  std::optional<topo::PathType> level;  ///< NCCL_NET_GDR_LEVEL, where nothing is known of the machine
  int read = -2;                        ///< NCCL_NET_GDR_READ, likewise
  bool dmaBuf = true;                   ///< NCCL_DMABUF_ENABLE
  bool alwaysFlush = false;             ///< NCCL_NET_FORCE_FLUSH
  bool neverFlush = false;              ///< NCCL_GDR_FLUSH_DISABLE
};

GpuDirectSettings gpuDirectSettings(const Params& params);

}  // namespace tutti::comm
