// One version of the net interface as a Net. Where versions differ, the difference stands as `if constexpr`.
#pragma once

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "plugin/net_plugin.h"
#include "plugin/net_upgrade.h"
#include "plugin/net_versions.h"
#include "plugin/plugin_calls.h"
#include "plugin/plugin_log.h"
#include "plugin/shared_init.h"

namespace tutti {

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

/// One communicator's use of a network of version V.
template <int V>
class PluginNet final : public Net {
  using Table = typename NetVersion<V>::Net;
  using Size = std::conditional_t<(V >= 9), std::size_t, int>;

 public:
  PluginNet(const PluginIdentity& who, SharedInit& shared) : calls_(who), shared_(shared) {}
  PluginNet(const PluginNet&) = delete;
  PluginNet& operator=(const PluginNet&) = delete;
  ~PluginNet() override { finish(); }

  /// Initialises the network. Not begun and "": never; anything else is why not.
  NetAttempt<Net> begin(const Table& exported, const NetOpening& opening);
  /// Why the network cannot be used; success: it can.
  NetAttempt<Net> examine();

  std::string_view name() const override { return calls_.who().name; }
  Result<int> devices() override;
  Result<NetProperties> properties(int device) override;

  Result<void*> listen(int device, NetHandle& handle) override;
  Result<void*> connect(int device, NetHandle& handle) override;
  Result<void*> accept(void* listener) override;
  Status closeListen(void* listener) override { return close("closeListen", table_.closeListen, listener); }
  Status closeSend(void* connection) override { return close("closeSend", table_.closeSend, connection); }
  Status closeRecv(void* connection) override { return close("closeRecv", table_.closeRecv, connection); }

  Result<void*> registerMemory(void* connection, void* data, std::size_t bytes, PtrKind kind) override;
  bool takesDmaBuf() const override { return table_.regMrDmaBuf != nullptr; }
  Result<void*> registerDmaBuf(void* connection, void* data, std::size_t bytes, std::uint64_t offset, int fd) override;
  Status deregisterMemory(void* connection, void* registration) override {
    return calls_.check("deregMr", connection, [&] { return table_.deregMr(connection, registration); });
  }

  Result<void*> isend(void* connection, const NetBuffer& message) override;
  Result<void*> irecv(void* connection, std::span<const NetBuffer> messages) override;
  Result<void*> iflush(void* connection, std::span<const NetBuffer> messages) override;
  Result<bool> test(void* request, std::span<int> sizes) override;

  bool fuses() const override;
  int maxFused() const override { return mostFused<V>(); }
  NetFusion makeVirtual(std::span<const int> devices) override;

 private:
  /// The first function that the network must have and has not; null: none.
  const char* missing() const;
  void finish();
  Status close(const char* call, ncclNetClose_v6_fn* function, void* end) {
    calls_.forget(end);
    return calls_.check(call, nullptr, [&] { return function(end); });
  }
  /// Messages of versions 6 to 8 are counted by an int and end at 1 GiB.
  Status checkLength(const char* call, const void* connection, std::size_t bytes) const {
    if (V >= 9 || bytes <= static_cast<std::size_t>(MAX_NET_SIZE)) [[likely]]
      return {};
    return calls_.refuse(
        ncclInternalError, call, calls_.deviceOf(connection),
        fmt::format("a message of {} bytes; this version of the interface carries at most {}", bytes, MAX_NET_SIZE));
  }
  Status checkNumber(const char* call, const void* connection, std::size_t messages) const {
    if (messages >= 1 && messages <= kMostReceives) [[likely]]
      return {};
    return calls_.refuse(ncclInternalError, call, calls_.deviceOf(connection),
                         fmt::format("{} messages in one call, not 1 to {}", messages, kMostReceives));
  }

  PluginCalls calls_;
  SharedInit& shared_;
  Table table_{};  // A copy: a plugin may write its own again for the next communicator.
  bool begun_ = false;
  void* context_ = nullptr;           // of version 11 and newer
  ncclNetCommConfig_v10_t config_{};  // version 10 wants it with each connect()
};

template <int V>
NetAttempt<Net> PluginNet<V>::begin(const Table& exported, const NetOpening& opening) {
  config_.trafficClass = opening.trafficClass;
  forgetPluginWarning();
  ncclResult_t code = ncclSuccess;
  if constexpr (V >= 11) {
    ncclNetCommConfig_v11_t config{opening.trafficClass};
    code = exported.init(&context_, opening.commId, &config, &pluginLog, &pluginProfile);
  } else {
    code = shared_.enter([&] {
      if constexpr (V == 10) return exported.init(&pluginLog, &pluginProfile);
      if constexpr (V < 10) return exported.init(&pluginLog);
    });
  }
  if (code != ncclSuccess) return {nullptr, errorCode(code), calls_.describe(code, "init", kNoDevice)};
  begun_ = true;
  table_ = exported;  // Not earlier: a plugin may complete its table in init().
  return {};
}

template <int V>
const char* PluginNet<V>::missing() const {
  const std::pair<const char*, bool> members[] = {{"devices", table_.devices != nullptr},
                                                  {"getProperties", table_.getProperties != nullptr},
                                                  {"listen", table_.listen != nullptr},
                                                  {"connect", table_.connect != nullptr},
                                                  {"accept", table_.accept != nullptr},
                                                  {"regMr", table_.regMr != nullptr},
                                                  {"deregMr", table_.deregMr != nullptr},
                                                  {"isend", table_.isend != nullptr},
                                                  {"irecv", table_.irecv != nullptr},
                                                  {"test", table_.test != nullptr},
                                                  {"closeSend", table_.closeSend != nullptr},
                                                  {"closeRecv", table_.closeRecv != nullptr},
                                                  {"closeListen", table_.closeListen != nullptr}};
  for (const auto& [member, there] : members) {
    if (!there) return member;
  }
  if constexpr (V >= 11) {
    if (table_.finalize == nullptr) return "finalize";
  }
  return nullptr;
}

template <int V>
NetAttempt<Net> PluginNet<V>::examine() {
  const auto unusable = [&](const std::string& why) {
    return NetAttempt<Net>{nullptr, ncclInvalidUsage, fmt::format("{}: {}", calls_.place(kNoDevice), why)};
  };
  if (const char* member = missing()) return unusable(fmt::format("its table has no {}", member));
  forgetPluginWarning();
  int count = 0;
  if (const ncclResult_t code = table_.devices(&count); code != ncclSuccess) {
    return {nullptr, errorCode(code), calls_.describe(code, "devices", kNoDevice)};
  }
  if (count <= 0) return unusable("it has no devices");
  auto said = blankProperties<V>();
  if (const ncclResult_t code = table_.getProperties(0, &said); code != ncclSuccess) {
    return {nullptr, errorCode(code), calls_.describe(code, "getProperties", 0)};
  }
  const NetProperties first = upgraded(said, 0);
  if (const std::string why = unusableBecause(first); !why.empty()) {
    return unusable(fmt::format("device 0 cannot be used: {}", why));
  }
  // Only what receives into GPU memory must be able to flush it.
  const bool gpuMemory = (first.ptrSupport & (NCCL_PTR_CUDA | NCCL_PTR_DMABUF)) != 0;
  if (gpuMemory && table_.iflush == nullptr) return unusable("its table has no iflush, which GPU memory needs");
  return {};
}

template <int V>
void PluginNet<V>::finish() {
  if (!begun_) return;
  if constexpr (V >= 11) {
    if (table_.finalize == nullptr) return;
    calls_.check("finalize", nullptr, [&] { return table_.finalize(context_); }).ignore();
  } else {
    shared_.leave();
  }
}

template <int V>
Result<int> PluginNet<V>::devices() {
  int count = 0;
  TRY(calls_.check("devices", nullptr, [&] { return table_.devices(&count); }));
  if (count < 0) return calls_.refuse(ncclInternalError, "devices", kNoDevice, fmt::format("there are {}", count));
  return count;
}

template <int V>
Result<NetProperties> PluginNet<V>::properties(int device) {
  auto said = blankProperties<V>();
  TRY(calls_.checkDevice("getProperties", device, [&] { return table_.getProperties(device, &said); }));
  NetProperties p = upgraded(said, device);
  if (const std::string why = unusableBecause(p); !why.empty()) {
    return calls_.refuse(ncclInternalError, "getProperties", device, "the device cannot be used: " + why);
  }
  p.maxRecvs = std::min(p.maxRecvs, static_cast<int>(kMostReceives));
  return p;
}

template <int V>
Result<void*> PluginNet<V>::listen(int device, NetHandle& handle) {
  void* listener = nullptr;
  TRY(calls_.checkDevice("listen", device, [&] {
    if constexpr (V >= 11) return table_.listen(context_, device, handle.data(), &listener);
    if constexpr (V < 11) return table_.listen(device, handle.data(), &listener);
  }));
  if (listener == nullptr) return calls_.refuse(ncclInternalError, "listen", device, "it succeeded without a listener");
  calls_.remember(listener, device);
  return listener;
}

template <int V>
Result<void*> PluginNet<V>::connect(int device, NetHandle& handle) {
  void* connection = nullptr;
  ncclNetDeviceHandle_t* noKernels = nullptr;  // Only networks that kernels drive would look for one.
  const Status status = calls_.checkDevice("connect", device, [&] {
    if constexpr (V >= 11) return table_.connect(context_, device, handle.data(), &connection, &noKernels);
    if constexpr (V == 10) return table_.connect(device, &config_, handle.data(), &connection, &noKernels);
    if constexpr (V >= 7 && V < 10) return table_.connect(device, handle.data(), &connection, &noKernels);
    if constexpr (V < 7) return table_.connect(device, handle.data(), &connection);
  });
  if (!status.ok()) {
    if (connection != nullptr) static_cast<void>(table_.closeSend(connection));
    return status;
  }
  if (connection != nullptr) calls_.remember(connection, device);
  return connection;
}

template <int V>
Result<void*> PluginNet<V>::accept(void* listener) {
  void* connection = nullptr;
  ncclNetDeviceHandle_t* noKernels = nullptr;
  const Status status = calls_.check("accept", listener, [&] {
    if constexpr (V >= 7) return table_.accept(listener, &connection, &noKernels);
    if constexpr (V < 7) return table_.accept(listener, &connection);
  });
  if (!status.ok()) {
    if (connection != nullptr) static_cast<void>(table_.closeRecv(connection));
    return status;
  }
  if (connection != nullptr) calls_.remember(connection, calls_.deviceOf(listener));
  return connection;
}

template <int V>
Result<void*> PluginNet<V>::registerMemory(void* connection, void* data, std::size_t bytes, PtrKind kind) {
  if (V < 8 && bytes > INT_MAX) {
    return calls_.refuse(ncclInternalError, "regMr", calls_.deviceOf(connection),
                         fmt::format("{} bytes; this version of the interface registers at most {}", bytes, INT_MAX));
  }
  void* registration = nullptr;
  TRY(calls_.check("regMr", connection, [&] {
    using Bytes = std::conditional_t<(V >= 8), std::size_t, int>;
    return table_.regMr(connection, data, static_cast<Bytes>(bytes), static_cast<int>(kind), &registration);
  }));
  return registration;
}

template <int V>
Result<void*> PluginNet<V>::registerDmaBuf(void* connection, void* data, std::size_t bytes, std::uint64_t offset,
                                           int fd) {
  if (table_.regMrDmaBuf == nullptr) {
    return calls_.refuse(ncclInvalidUsage, "regMrDmaBuf", calls_.deviceOf(connection), "the network takes no dma-bufs");
  }
  void* registration = nullptr;
  TRY(calls_.check("regMrDmaBuf", connection, [&] {
    return table_.regMrDmaBuf(connection, data, bytes, NCCL_PTR_CUDA, offset, fd, &registration);
  }));
  return registration;
}

template <int V>
Result<void*> PluginNet<V>::isend(void* connection, const NetBuffer& message) {
  TRY(checkLength("isend", connection, message.bytes));
  void* request = nullptr;
  TRY(calls_.check("isend", connection, [&] {
    const auto bytes = static_cast<Size>(message.bytes);
    if constexpr (V >= 10) {
      return table_.isend(connection, message.data, bytes, message.tag, message.registration, nullptr, &request);
    } else {
      return table_.isend(connection, message.data, bytes, message.tag, message.registration, &request);
    }
  }));
  return request;
}

template <int V>
Result<void*> PluginNet<V>::irecv(void* connection, std::span<const NetBuffer> messages) {
  TRY(checkNumber("irecv", connection, messages.size()));
  std::array<void*, kMostReceives> data;
  std::array<Size, kMostReceives> sizes;
  std::array<int, kMostReceives> tags;
  std::array<void*, kMostReceives> registrations;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    TRY(checkLength("irecv", connection, messages[i].bytes));
    data[i] = messages[i].data;
    sizes[i] = static_cast<Size>(messages[i].bytes);
    tags[i] = messages[i].tag;
    registrations[i] = messages[i].registration;
  }
  const int n = static_cast<int>(messages.size());
  void* request = nullptr;  // Neither a hint nor what an older request left there.
  TRY(calls_.check("irecv", connection, [&] {
    if constexpr (V >= 10) {
      std::array<void*, kMostReceives> noEvents{};
      return table_.irecv(connection, n, data.data(), sizes.data(), tags.data(), registrations.data(), noEvents.data(),
                          &request);
    } else {
      return table_.irecv(connection, n, data.data(), sizes.data(), tags.data(), registrations.data(), &request);
    }
  }));
  return request;
}

template <int V>
Result<void*> PluginNet<V>::iflush(void* connection, std::span<const NetBuffer> messages) {
  TRY(checkNumber("iflush", connection, messages.size()));
  if (table_.iflush == nullptr) {
    return calls_.refuse(ncclInternalError, "iflush", calls_.deviceOf(connection), "the network has no such function");
  }
  std::array<void*, kMostReceives> data;
  std::array<int, kMostReceives> sizes;
  std::array<void*, kMostReceives> registrations;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    data[i] = messages[i].data;
    sizes[i] = static_cast<int>(messages[i].bytes);
    registrations[i] = messages[i].registration;
  }
  void* request = nullptr;
  TRY(calls_.check("iflush", connection, [&] {
    return table_.iflush(connection, static_cast<int>(messages.size()), data.data(), sizes.data(), registrations.data(),
                         &request);
  }));
  return request;
}

template <int V>
Result<bool> PluginNet<V>::test(void* request, std::span<int> sizes) {
  // Plugins write as many sizes as they received messages, and some do so without being asked.
  std::array<int, kMostReceives> received{};
  int done = 0;
  TRY(calls_.check("test", nullptr, [&] { return table_.test(request, &done, received.data()); }));
  if (done == 0) return false;
  for (std::size_t i = 0; i < std::min(sizes.size(), received.size()); ++i) {
    if (received[i] < 0) {
      return calls_.refuse(ncclInternalError, "test", calls_.deviceOf(nullptr),
                           fmt::format("message {} of a receive has {} bytes", i, received[i]));
    }
    sizes[i] = received[i];
  }
  return true;
}

template <int V>
bool PluginNet<V>::fuses() const {
  if constexpr (V >= 9) {
    return table_.makeVDevice != nullptr;
  } else {
    return false;
  }
}

template <int V>
NetFusion PluginNet<V>::makeVirtual(std::span<const int> devices) {
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
    const ncclResult_t code = table_.makeVDevice(&made.device, &list);
    if (code != ncclSuccess) return {kNoDevice, calls_.describe(code, "makeVDevice", devices[0])};
  }
  return made;
}

/// The network of version V in a library.
template <int V>
class LoadedNetOf final : public LoadedNet {
  using Table = typename NetVersion<V>::Net;

 public:
  LoadedNetOf(const Table& exported, const std::string& path)
      : exported_(exported), who_{exported.name, "net", V, path} {}

  std::string_view name() const override { return who_.name; }
  int version() const override { return V; }
  NetAttempt<Net> attempt(const NetOpening& opening) override {
    auto net = std::make_unique<PluginNet<V>>(who_, shared_);
    if (auto begun = net->begin(exported_, opening); begun.code != ncclSuccess) return begun;
    if (auto examined = net->examine(); examined.code != ncclSuccess) return examined;
    return {std::move(net), ncclSuccess, {}};
  }

 private:
  const Table& exported_;
  const PluginIdentity who_;
  SharedInit shared_;
};

}  // namespace tutti
