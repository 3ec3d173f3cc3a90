// The types of each version of the tuner interface, by number.
#pragma once

#include "nccl_tuner.h"

namespace tutti::plugin {

inline constexpr int kOldestTunerVersion = 2;
inline constexpr int kNewestTunerVersion = 6;

template <int Version>
struct TunerVersion;

#define TUTTI_TUNER_VERSION(N)                                     \
  template <>                                                      \
  struct TunerVersion<N> {                                         \
    using Table = ncclTuner_v##N##_t;                              \
    static constexpr const char* kSymbol = "ncclTunerPlugin_v" #N; \
  };

TUTTI_TUNER_VERSION(2)
TUTTI_TUNER_VERSION(3)
TUTTI_TUNER_VERSION(4)
TUTTI_TUNER_VERSION(5)
TUTTI_TUNER_VERSION(6)
#undef TUTTI_TUNER_VERSION

}  // namespace tutti::plugin
