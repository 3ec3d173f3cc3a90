// The kinds of plugins, and what differs in how they are found and spoken of.
#pragma once

#include <cstdint>

#include "base/log.h"

namespace tutti::plugin {

/// One kind of plugin. Constants of this header only.
struct PluginKind {
  const char* label;        ///< in front of its log lines: "NET"
  const char* word;         ///< in sentences: "network"
  const char* prefix;       ///< of its file names: "libnccl-net"
  const char* setting;      ///< names the library, or the libraries: "NCCL_NET_PLUGIN"
  std::uint32_t subsystem;  ///< of its log lines, beside kInit
};

inline constexpr PluginKind kNetPlugins{"NET", "network", "libnccl-net", "NCCL_NET_PLUGIN", kNet};
inline constexpr PluginKind kTunerPlugins{"TUNER", "tuner", "libnccl-tuner", "NCCL_TUNER_PLUGIN", kTuning};
inline constexpr PluginKind kProfilerPlugins{"PROFILER", "profiler", "libnccl-profiler", "NCCL_PROFILER_PLUGIN",
                                             kProfile};
inline constexpr PluginKind kEnvPlugins{"ENV", "env", "libnccl-env", "NCCL_ENV_PLUGIN", kEnv};

}  // namespace tutti::plugin
