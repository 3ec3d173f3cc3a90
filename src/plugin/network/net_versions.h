// The types of each version of the net and collNet interfaces, by number.
#pragma once

#include <type_traits>

#include "nccl_net.h"

namespace tutti::plugin {

inline constexpr int kOldestNetVersion = 6;
inline constexpr int kNewestNetVersion = 12;

template <int Version>
struct NetVersion;

#define TUTTI_NET_VERSION(N, FusedProperties)                            \
  template <>                                                            \
  struct NetVersion<N> {                                                 \
    using Net = ncclNet_v##N##_t;                                        \
    using CollNet = ncclCollNet_v##N##_t;                                \
    using Properties = ncclNetProperties_v##N##_t;                       \
    using Fused = FusedProperties;                                       \
    static constexpr const char* kNetSymbol = "ncclNetPlugin_v" #N;      \
    static constexpr const char* kCollSymbol = "ncclCollNetPlugin_v" #N; \
  };

TUTTI_NET_VERSION(6, void)
TUTTI_NET_VERSION(7, void)
TUTTI_NET_VERSION(8, void)
TUTTI_NET_VERSION(9, ncclNetVDeviceProps_v9_t)
TUTTI_NET_VERSION(10, ncclNetVDeviceProps_v10_t)
TUTTI_NET_VERSION(11, ncclNetVDeviceProps_v11_t)
TUTTI_NET_VERSION(12, ncclNetVDeviceProps_v12_t)
#undef TUTTI_NET_VERSION

/// How many devices one may be made of; 0: the version does not fuse.
template <int Version>
constexpr int mostFused() {
  if constexpr (std::is_void_v<typename NetVersion<Version>::Fused>) {
    return 0;
  } else {
    return static_cast<int>(std::extent_v<decltype(NetVersion<Version>::Fused::devs)>);
  }
}

}  // namespace tutti::plugin
