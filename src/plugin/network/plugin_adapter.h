// What the adapters of the net and of the collNet interface do alike.
#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "plugin/network/net_plugin.h"
#include "plugin/network/net_upgrade.h"
#include "plugin/network/net_versions.h"
#include "plugin/network/shared_init.h"
#include "plugin/plugin_calls.h"

namespace tutti::plugin {

/// Most receives that are posted as one, whatever a plugin offers; test() gives plugins room for as many sizes.
inline constexpr std::size_t kMostReceives = 32;

/// What a plugin finds in a struct that it is to fill: what versions know of it that leave the rest alone.
template <int V>
typename NetVersion<V>::Properties blankProperties() {
  typename NetVersion<V>::Properties blank{};
  if constexpr (V >= 12) blank.railId = blank.planeId = NCCL_NET_ID_UNDEF;
  return blank;
}

/// The list of a fused device in the form of a version.
template <int V>
typename NetVersion<V>::Fused fusedList(std::span<const int> devices) {
  typename NetVersion<V>::Fused list{};
  list.ndevs = static_cast<int>(devices.size());
  std::copy(devices.begin(), devices.end(), list.devs);
  return list;
}

/// One communicator's use of a plugin through a table of version V. `Interface`: Net or CollNet.
template <int V, class Interface, class TableOfVersion>
class PluginAdapter : public Interface {
 public:
  using Table = TableOfVersion;

  PluginAdapter(const PluginIdentity& who, SharedInit& shared) : calls_(who), shared_(shared) {}
  PluginAdapter(const PluginAdapter&) = delete;
  PluginAdapter& operator=(const PluginAdapter&) = delete;
  ~PluginAdapter() override { finish(); }

  std::string_view name() const final { return calls_.who().name; }
  Result<int> devices() final;
  Result<void*> listen(int device, NetHandle& handle) final;
  Status closeListen(void* listener) final { return closeEnd("closeListen", table_.closeListen, listener); }

  Result<void*> registerMemory(void* connection, void* data, std::size_t bytes, PtrKind kind) final;
  bool takesDmaBuf() const final { return table_.regMrDmaBuf != nullptr; }
  Result<void*> registerDmaBuf(void* connection, void* data, std::size_t bytes, std::uint64_t offset, int fd) final;
  Status deregisterMemory(void* connection, void* registration) final {
    return calls_.check("deregMr", connection, [&] { return table_.deregMr(connection, registration); });
  }

  bool fuses() const final {
    if constexpr (V >= 9) {
      return table_.makeVDevice != nullptr;
    } else {
      return false;
    }
  }
  int maxFused() const final { return mostFused<V>(); }
  NetFusion makeVirtual(std::span<const int> devices) final;

 protected:
  using Attempt = NetAttempt<Interface>;

  /// What init() has returned, after which `exported` may be used.
  Attempt begun(ncclResult_t code, const Table& exported);
  /// Whether a table without `missing` (null: it has all that both interfaces ask for) and with at least one device
  /// stands there.
  Attempt examineTable(const char* missing);
  /// The first function that is not there; null: all are.
  static const char* firstMissing(std::initializer_list<std::pair<const char*, bool>> members);
  const char* missingFinalize() const {
    if constexpr (V >= 11) {
      if (table_.finalize == nullptr) return "finalize";
    }
    return nullptr;
  }
  Attempt unusable(const std::string& why) const {
    return {nullptr, ncclInvalidUsage, fmt::format("{}: {}", calls_.place(kNoDevice), why)};
  }
  Attempt failed(ncclResult_t code, const char* call, int device) {
    return {nullptr, errorCode(code), calls_.describe(code, call, device)};
  }

  Status closeEnd(const char* call, ncclNetClose_v6_fn* function, void* end) {
    calls_.forget(end);
    return calls_.check(call, nullptr, [&] { return function(end); });
  }
  /// An error of ours about an end of a connection.
  Status refuse(const char* call, const void* connection, const std::string& why) const {
    return calls_.refuse(ncclInternalError, call, calls_.deviceOf(connection), why);
  }

  PluginCalls calls_;
  SharedInit& shared_;
  Table table_{};            ///< a copy: a plugin may write its own again for the next communicator
  void* context_ = nullptr;  ///< of version 11 and newer

 private:
  void finish();

  bool begun_ = false;
};

template <int V, class Interface, class Table>
NetAttempt<Interface> PluginAdapter<V, Interface, Table>::begun(ncclResult_t code, const Table& exported) {
  if (code != ncclSuccess) return failed(code, "init", kNoDevice);
  begun_ = true;
  table_ = exported;  // Not earlier: a plugin may complete its table in init().
  return {};
}

template <int V, class Interface, class Table>
const char* PluginAdapter<V, Interface, Table>::firstMissing(
    std::initializer_list<std::pair<const char*, bool>> members) {
  for (const auto& [member, there] : members) {
    if (!there) return member;
  }
  return nullptr;
}

template <int V, class Interface, class Table>
NetAttempt<Interface> PluginAdapter<V, Interface, Table>::examineTable(const char* missing) {
  if (missing == nullptr) missing = missingFinalize();
  if (missing != nullptr) return unusable(fmt::format("its table has no {}", missing));
  forgetPluginWarning();
  int count = 0;
  const ncclResult_t code = calls_.noted("devices", kNoDevice, [&] { return table_.devices(&count); });
  if (code != ncclSuccess) return failed(code, "devices", kNoDevice);
  if (count <= 0) return unusable("it has no devices");
  return {};
}

template <int V, class Interface, class Table>
void PluginAdapter<V, Interface, Table>::finish() {
  if (!begun_) return;
  if constexpr (V >= 11) {
    if (table_.finalize == nullptr) return;
    calls_.check("finalize", nullptr, [&] { return table_.finalize(context_); }).ignore();
  } else {
    shared_.leave();
  }
}

template <int V, class Interface, class Table>
Result<int> PluginAdapter<V, Interface, Table>::devices() {
  int count = 0;
  TRY(calls_.check("devices", nullptr, [&] { return table_.devices(&count); }));
  if (count < 0) return calls_.refuse(ncclInternalError, "devices", kNoDevice, fmt::format("there are {}", count));
  return count;
}

template <int V, class Interface, class Table>
Result<void*> PluginAdapter<V, Interface, Table>::listen(int device, NetHandle& handle) {
  void* listener = nullptr;
  TRY(calls_.checkDevice("listen", device, [&] {
    if constexpr (V >= 11) return table_.listen(context_, device, handle.data(), &listener);
    if constexpr (V < 11) return table_.listen(device, handle.data(), &listener);
  }));
  if (listener == nullptr) return calls_.refuse(ncclInternalError, "listen", device, "it succeeded without a listener");
  calls_.remember(listener, device);
  return listener;
}

template <int V, class Interface, class Table>
Result<void*> PluginAdapter<V, Interface, Table>::registerMemory(void* connection, void* data, std::size_t bytes,
                                                                 PtrKind kind) {
  if (V < 8 && bytes > INT_MAX) {
    return refuse("regMr", connection,
                  fmt::format("{} bytes; this version of the interface registers at most {}", bytes, INT_MAX));
  }
  void* registration = nullptr;
  TRY(calls_.check("regMr", connection, [&] {
    using Bytes = std::conditional_t<(V >= 8), std::size_t, int>;
    return table_.regMr(connection, data, static_cast<Bytes>(bytes), static_cast<int>(kind), &registration);
  }));
  return registration;
}

template <int V, class Interface, class Table>
Result<void*> PluginAdapter<V, Interface, Table>::registerDmaBuf(void* connection, void* data, std::size_t bytes,
                                                                 std::uint64_t offset, int fd) {
  if (!takesDmaBuf()) {
    return calls_.refuse(ncclInvalidUsage, "regMrDmaBuf", calls_.deviceOf(connection), "the network takes no dma-bufs");
  }
  void* registration = nullptr;
  TRY(calls_.check("regMrDmaBuf", connection, [&] {
    return table_.regMrDmaBuf(connection, data, bytes, NCCL_PTR_CUDA, offset, fd, &registration);
  }));
  return registration;
}

template <int V, class Interface, class Table>
NetFusion PluginAdapter<V, Interface, Table>::makeVirtual(std::span<const int> devices) {
  const auto refused = [&](const std::string& why) {
    return NetFusion{kNoDevice, fmt::format("{}: {}", calls_.place(kNoDevice), why)};
  };
  if (!fuses()) return refused("it fuses no devices");
  if (devices.empty() || devices.size() > static_cast<std::size_t>(maxFused())) {
    return refused(fmt::format("{} devices; at most {} become one", devices.size(), maxFused()));
  }
  NetFusion made;
  if constexpr (V >= 9) {
    auto list = fusedList<V>(devices);
    const PluginWarningsAsInfo noWarnings;
    forgetPluginWarning();
    const ncclResult_t code =
        calls_.noted("makeVDevice", devices[0], [&] { return table_.makeVDevice(&made.device, &list); });
    if (code != ncclSuccess) return {kNoDevice, calls_.describe(code, "makeVDevice", devices[0])};
    if (made.device < 0) return refused("makeVDevice: it succeeded without a device");
  }
  return made;
}

/// The network of one version in a library. `Loaded`: LoadedNet or LoadedCollNet; `Adapter`: what uses it.
template <int V, class Interface, class Loaded, class Adapter>
class LoadedAdapter final : public Loaded {
  using Table = typename Adapter::Table;

 public:
  LoadedAdapter(const Table& exported, const std::string& path)
      : exported_(exported), who_{exported.name, Adapter::kKind, V, path} {}

  std::string_view name() const override { return who_.name; }
  int version() const override { return V; }
  NetAttempt<Interface> attempt(const NetOpening& opening) override {
    auto net = std::make_unique<Adapter>(who_, shared_);
    if (auto begun = net->begin(exported_, opening); begun.code != ncclSuccess) return begun;
    if (auto examined = net->examine(); examined.code != ncclSuccess) return examined;
    return {std::move(net), ncclSuccess, {}};
  }

 private:
  const Table& exported_;
  const PluginIdentity who_;
  SharedInit shared_;
};

}  // namespace tutti::plugin
