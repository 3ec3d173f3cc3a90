#include "plugin/profiler_versions.h"

#include <fmt/core.h>

#include <array>
#include <atomic>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/log.h"
#include "plugin/kind.h"
#include "plugin/plugin_log.h"
#include "plugin/version_search.h"

namespace tutti::plugin {

namespace {

template <int V>
struct ProfilerVersion;

#define PROFILER_VERSION(version)                                   \
  template <>                                                       \
  struct ProfilerVersion<version> {                                 \
    using Table = ncclProfiler_v##version##_t;                      \
    using Descriptor = ncclProfilerEventDescr_v##version##_t;       \
    using StateArgs = ncclProfilerEventStateArgs_v##version##_t;    \
    static constexpr const char* kName = "ncclProfiler_v" #version; \
  };
PROFILER_VERSION(1)
PROFILER_VERSION(2)
PROFILER_VERSION(3)
PROFILER_VERSION(4)
PROFILER_VERSION(5)
PROFILER_VERSION(6)
#undef PROFILER_VERSION

constexpr int kCopyEngines = ncclProfileCeColl | ncclProfileCeSync | ncclProfileCeBatch;

/// Kinds that a version has descriptors for.
constexpr int kindsOf(int version) {
  constexpr int kFirst = ncclProfileGroup | ncclProfileColl | ncclProfileP2p | ncclProfileProxyOp |
                         ncclProfileProxyStep | ncclProfileProxyCtrl;
  constexpr int kThird = kFirst | ncclProfileKernelCh | ncclProfileNetPlugin;
  constexpr int kFifth =
      kThird | ncclProfileGroupApi | ncclProfileCollApi | ncclProfileP2pApi | ncclProfileKernelLaunch;
  if (version <= 2) return kFirst;
  if (version <= 4) return kThird;
  return version == 5 ? kFifth : kFifth | kCopyEngines;
}

bool knowsState(int version, EventState state) {
  if (version <= 3) return state >= ncclProfilerProxyStepSendGPUWait && state <= ncclProfilerProxyCtrlAppendEnd;
  if (version == 4) return state >= ncclProfilerProxyStepSendGPUWait && state <= ncclProfilerKernelChStop;
  return version > 5 || state <= ncclProfilerGroupEndApiStart;
}

/// A word's place in a list, `otherwise` for what is not there: version 1 has numbers in place of words.
template <std::size_t N>
std::uint8_t numberOf(const char* word, const std::array<std::string_view, N>& words, std::uint8_t otherwise) {
  for (std::size_t i = 0; i < N; ++i) {
    if (word != nullptr && words[i] == word) return static_cast<std::uint8_t>(i);
  }
  return otherwise;
}

std::uint8_t functionNumber(const char* word) {
  constexpr std::uint8_t kSend = 6;
  constexpr std::array<std::string_view, 8> kWords{"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                                   "AllReduce", "SendRecv", "Send",      "Recv"};
  return numberOf(word, kWords, kSend);
}
std::uint8_t typeNumber(const char* word) {
  constexpr std::array<std::string_view, 12> kWords{"ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
                                                    "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
                                                    "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
  return numberOf(word, kWords, ncclFloat64);
}
std::uint8_t algorithmNumber(const char* word) {
  constexpr std::array<std::string_view, 7> kWords{"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                                   "NVLS_TREE", "PAT"};
  return numberOf(word, kWords, 6);
}
std::uint8_t protocolNumber(const char* word) {
  constexpr std::array<std::string_view, 3> kWords{"LL", "LL128", "SIMPLE"};
  return numberOf(word, kWords, 2);
}

template <int V, class To>
void fillColl(To& to, const ncclProfilerCollDescr_v5_t& from) {
  to.seqNumber = from.seqNumber;
  to.sendBuff = from.sendBuff;
  to.recvBuff = from.recvBuff;
  to.count = from.count;
  to.root = from.root;
  to.nWarps = from.nWarps;
  if constexpr (V == 1) {
    to.func = functionNumber(from.func);
    to.datatype = typeNumber(from.datatype);
    to.algo = algorithmNumber(from.algo);
    to.proto = protocolNumber(from.proto);
  } else {
    to.func = from.func;
    to.datatype = from.datatype;
    to.algo = from.algo;
    to.proto = from.proto;
  }
  if constexpr (V < 4) {
    to.nMaxChannels = from.nChannels;
  } else {
    to.nChannels = from.nChannels;
  }
}

template <int V, class To>
void fillP2p(To& to, const ncclProfilerP2pDescr_v5_t& from) {
  to.buff = from.buff;
  to.count = from.count;
  to.peer = from.peer;
  if constexpr (V == 1) {
    to.func = functionNumber(from.func);
    to.datatype = typeNumber(from.datatype);
  } else {
    to.func = from.func;
    to.datatype = from.datatype;
  }
  if constexpr (V == 4) to.nChannels = from.nChannels;
}

/// The descriptor of versions 1 to 4: of kinds that they know.
template <int V>
typename ProfilerVersion<V>::Descriptor downgraded(const Event& event) {
  typename ProfilerVersion<V>::Descriptor old{};
  old.type = static_cast<std::uint8_t>(event.type);
  old.parentObj = event.parentObj;
  old.rank = event.rank;
  switch (event.type) {
    case ncclProfileColl:
      old.parentObj = event.coll.parentGroup;
      fillColl<V>(old.coll, event.coll);
      break;
    case ncclProfileP2p:
      old.parentObj = event.p2p.parentGroup;
      fillP2p<V>(old.p2p, event.p2p);
      break;
    case ncclProfileProxyOp:
      old.proxyOp = event.proxyOp;
      break;
    case ncclProfileProxyStep:
      old.proxyStep = event.proxyStep;
      break;
    case ncclProfileKernelCh:
      if constexpr (V == 3) old.kernelCh.channelId = event.kernelCh.channelId;
      if constexpr (V == 4) old.kernelCh = event.kernelCh;
      break;
    case ncclProfileNetPlugin:
      if constexpr (V >= 3) old.netPlugin = event.netPlugin;
      break;
    default:
      break;
  }
  return old;
}

/// Version 5 has no copy engines, and else the same members at the same places.
ncclProfilerEventDescr_v5_t fifth(const Event& event) {
  ncclProfilerEventDescr_v5_t old{};
  old.type = event.type;
  old.parentObj = event.parentObj;
  old.rank = event.rank;
  static_assert(sizeof(old.coll) == sizeof(old) - offsetof(ncclProfilerEventDescr_v5_t, coll));
  old.coll = event.coll;
  switch (event.type) {
    case ncclProfileGroupApi:
      old.groupApi = event.groupApi;
      break;
    case ncclProfileCollApi:
      old.collApi = event.collApi;
      break;
    case ncclProfileP2pApi:
      old.p2pApi = event.p2pApi;
      break;
    case ncclProfileKernelLaunch:
      old.kernelLaunch = event.kernelLaunch;
      break;
    case ncclProfileP2p:
      old.p2p = event.p2p;
      break;
    case ncclProfileProxyOp:
      old.proxyOp = event.proxyOp;
      break;
    case ncclProfileProxyStep:
      old.proxyStep = event.proxyStep;
      break;
    case ncclProfileKernelCh:
      old.kernelCh = event.kernelCh;
      break;
    case ncclProfileNetPlugin:
      old.netPlugin = event.netPlugin;
      break;
    default:
      break;
  }
  return old;
}

template <int V>
class ProfilerAdapter final : public ProfilerPlugin {
 public:
  using Version = ProfilerVersion<V>;

  /// Functions are read when they are called: a plugin may fill its table in init().
  ProfilerAdapter(const typename Version::Table& table, std::string path) : table_(table), path_(std::move(path)) {}

  const char* name() const override { return table_.name; }
  std::string describe() const override { return fmt::format("profiler {} (v{} of {})", table_.name, V, path_); }

  ncclResult_t init(void** context, int* mask, const ProfiledComm& comm) override {
    const char* commName = comm.name.empty() ? nullptr : comm.name.c_str();
    ncclResult_t code = ncclSuccess;
    if constexpr (V <= 3) {
      code = table_.init(context, mask);
    } else if constexpr (V == 4) {
      code = table_.init(context, mask, commName, comm.commId, comm.nNodes, comm.nRanks, comm.rank, pluginLog);
    } else {
      code = table_.init(context, comm.commId, mask, commName, comm.nNodes, comm.nRanks, comm.rank, pluginLog);
    }
    if constexpr (V < 6) std::atomic_ref<int>(*mask).fetch_and(~kCopyEngines, std::memory_order_relaxed);
    return code;
  }

  void* start(void* context, Event& event) override {
    if ((event.type & static_cast<unsigned>(kindsOf(V))) == 0 || table_.startEvent == nullptr) return nullptr;
    void* handle = nullptr;
    if constexpr (V <= 4) {
      auto old = downgraded<V>(event);
      table_.startEvent(context, &handle, &old);
    } else if constexpr (V == 5) {
      auto old = fifth(event);
      table_.startEvent(context, &handle, &old);
    } else {
      table_.startEvent(context, &handle, &event);
    }
    return handle;
  }

  void stop(void* handle) override {
    if (table_.stopEvent != nullptr) table_.stopEvent(handle);
  }

  void state(void* handle, EventState state, EventStateArgs* args) override {
    if (!knowsState(V, state) || table_.recordEventState == nullptr) return;
    if constexpr (V <= 3) {
      typename Version::StateArgs old{};
      if (state >= ncclProfilerProxyCtrlIdle && args != nullptr) {
        old.proxyCtrl.appendedProxyOps = args->proxyCtrl.appendedProxyOps;
      }
      table_.recordEventState(handle, state, &old);
    } else {
      table_.recordEventState(handle, state, args);
    }
  }

  void finalize(void* context) override {
    if (table_.finalize != nullptr) table_.finalize(context);
  }

 private:
  const typename Version::Table& table_;
  const std::string path_;
};

}  // namespace

std::unique_ptr<ProfilerPlugin> findProfiler(const DlLibrary& library, const std::string& path) {
  return newestVersion<ProfilerVersion, ProfilerAdapter, ProfilerPlugin, 6, 1>(library, path, kProfilerPlugins,
                                                                               "Loaded");
}

}  // namespace tutti::plugin
