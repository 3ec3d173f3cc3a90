// One version of the collNet interface as a CollNet. Where versions differ, the difference stands as `if constexpr`.
#pragma once

#include <array>
#include <climits>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "plugin/collnet.h"
#include "plugin/net_adapter.h"

namespace tutti {

/// One communicator's use of a collNet of version V.
template <int V>
class PluginCollNet final : public CollNet {
  using Table = typename NetVersion<V>::CollNet;

 public:
  PluginCollNet(const PluginIdentity& who, SharedInit& shared) : calls_(who), shared_(shared) {}
  PluginCollNet(const PluginCollNet&) = delete;
  PluginCollNet& operator=(const PluginCollNet&) = delete;
  ~PluginCollNet() override { finish(); }

  /// As with PluginNet.
  NetAttempt<CollNet> begin(const Table& exported, const NetOpening& opening);
  NetAttempt<CollNet> examine();

  std::string_view name() const override { return calls_.who().name; }
  Result<int> devices() override;
  Result<NetProperties> properties(int device) override;

  Result<void*> listen(int device, NetHandle& handle) override;
  Result<void*> connect(std::span<NetHandle> handles, int rank, void* listener) override;
  Status closeListen(void* listener) override { return end("closeListen", table_.closeListen, listener); }
  Status close(void* connection) override { return end("closeColl", table_.closeColl, connection); }

  Result<bool> reduces(CollNetReduction reduction) override;
  Result<void*> registerMemory(void* connection, void* data, std::size_t bytes, PtrKind kind) override;
  bool takesDmaBuf() const override { return table_.regMrDmaBuf != nullptr; }
  Result<void*> registerDmaBuf(void* connection, void* data, std::size_t bytes, std::uint64_t offset, int fd) override;
  Status deregisterMemory(void* connection, void* registration) override {
    return calls_.check("deregMr", connection, [&] { return table_.deregMr(connection, registration); });
  }

  Result<void*> iallreduce(void* connection, const CollNetBuffer& send, const CollNetBuffer& recv,
                           CollNetReduction reduction) override;
  bool gathers() const override;
  Result<void*> iallgather(void* connection, const CollNetBuffer& send, const CollNetBuffer& recv,
                           const CollNetWindow& window) override;
  bool scatters() const override;
  Result<void*> ireducescatter(void* connection, const CollNetBuffer& send, const CollNetBuffer& recv,
                               const CollNetWindow& window, CollNetReduction reduction) override;
  Result<void*> iflush(void* connection, const CollNetBuffer& received) override;
  Result<bool> test(void* request, int* bytes) override;

  bool fuses() const override;
  int maxFused() const override { return mostFused<V>(); }
  Result<int> makeVirtual(std::span<const int> devices) override;

 private:
  const char* missing() const;
  void finish();
  Status end(const char* call, ncclNetClose_v6_fn* function, void* what) {
    calls_.forget(what);
    return calls_.check(call, nullptr, [&] { return function(what); });
  }
  Status refuse(const char* call, const void* connection, const std::string& why) const {
    return calls_.refuse(ncclInternalError, call, calls_.deviceOf(connection), why);
  }
  /// Pieces of version 8 have a size of 32 bits and end at 512 MiB.
  Status checkPart(const char* call, const void* connection, std::size_t bytes) const {
    if (V != 8 || bytes <= static_cast<std::size_t>(MAX_COLLNET_SIZE)) return {};
    return refuse(call, connection,
                  fmt::format("{} bytes; this version of the interface takes at most {}", bytes, MAX_COLLNET_SIZE));
  }

  PluginCalls calls_;
  SharedInit& shared_;
  Table table_{};
  bool begun_ = false;
  void* context_ = nullptr;  // of version 11 and newer
};

template <int V>
NetAttempt<CollNet> PluginCollNet<V>::begin(const Table& exported, const NetOpening& opening) {
  forgetPluginWarning();
  ncclResult_t code = ncclSuccess;
  if constexpr (V >= 11) {
    code = exported.init(&context_, opening.commId, &pluginLog);
  } else {
    code = shared_.enter([&] { return exported.init(&pluginLog); });
  }
  if (code != ncclSuccess) return {nullptr, errorCode(code), calls_.describe(code, "init", kNoDevice)};
  begun_ = true;
  table_ = exported;
  return {};
}

template <int V>
const char* PluginCollNet<V>::missing() const {
  const std::pair<const char*, bool> members[] = {{"devices", table_.devices != nullptr},
                                                  {"getProperties", table_.getProperties != nullptr},
                                                  {"listen", table_.listen != nullptr},
                                                  {"connect", table_.connect != nullptr},
                                                  {"regMr", table_.regMr != nullptr},
                                                  {"deregMr", table_.deregMr != nullptr},
                                                  {"iallreduce", table_.iallreduce != nullptr},
                                                  {"reduceSupport", table_.reduceSupport != nullptr},
                                                  {"test", table_.test != nullptr},
                                                  {"iflush", table_.iflush != nullptr},
                                                  {"closeColl", table_.closeColl != nullptr},
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
NetAttempt<CollNet> PluginCollNet<V>::examine() {
  const auto unusable = [&](const std::string& why) {
    return NetAttempt<CollNet>{nullptr, ncclInvalidUsage, fmt::format("{}: {}", calls_.place(kNoDevice), why)};
  };
  if (const char* member = missing()) return unusable(fmt::format("its table has no {}", member));
  forgetPluginWarning();
  int count = 0;
  if (const ncclResult_t code = table_.devices(&count); code != ncclSuccess) {
    return {nullptr, errorCode(code), calls_.describe(code, "devices", kNoDevice)};
  }
  if (count <= 0) return unusable("it has no devices");
  return {};
}

template <int V>
void PluginCollNet<V>::finish() {
  if (!begun_) return;
  if constexpr (V >= 11) {
    if (table_.finalize == nullptr) return;
    calls_.check("finalize", nullptr, [&] { return table_.finalize(context_); }).ignore();
  } else {
    shared_.leave();
  }
}

template <int V>
Result<int> PluginCollNet<V>::devices() {
  int count = 0;
  TRY(calls_.check("devices", nullptr, [&] { return table_.devices(&count); }));
  if (count < 0) return calls_.refuse(ncclInternalError, "devices", kNoDevice, fmt::format("there are {}", count));
  return count;
}

template <int V>
Result<NetProperties> PluginCollNet<V>::properties(int device) {
  auto said = blankProperties<V>();
  TRY(calls_.checkDevice("getProperties", device, [&] { return table_.getProperties(device, &said); }));
  NetProperties p = upgradedForCollNet(said, device);
  std::string why = unusableBecause(p);
  if (why.empty() && (p.maxCollBytes == 0 || p.maxCollBytes > static_cast<std::size_t>(NCCL_MAX_NET_SIZE_BYTES))) {
    why = fmt::format("its maxCollBytes is {}, not 1 to {}", p.maxCollBytes, NCCL_MAX_NET_SIZE_BYTES);
  }
  if (!why.empty()) {
    return calls_.refuse(ncclInternalError, "getProperties", device, "the device cannot be used: " + why);
  }
  return p;
}

template <int V>
Result<void*> PluginCollNet<V>::listen(int device, NetHandle& handle) {
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
Result<void*> PluginCollNet<V>::connect(std::span<NetHandle> handles, int rank, void* listener) {
  std::vector<void*> all;
  for (NetHandle& handle : handles) all.push_back(handle.data());
  void* connection = nullptr;
  TRY(calls_.check("connect", listener, [&] {
    return table_.connect(all.data(), static_cast<int>(all.size()), rank, listener, &connection);
  }));
  if (connection != nullptr) calls_.remember(connection, calls_.deviceOf(listener));
  return connection;
}

template <int V>
Result<bool> PluginCollNet<V>::reduces(CollNetReduction reduction) {
  int supported = 0;
  TRY(calls_.check("reduceSupport", nullptr,
                   [&] { return table_.reduceSupport(reduction.type, reduction.op, &supported); }));
  return supported != 0;
}

template <int V>
Result<void*> PluginCollNet<V>::registerMemory(void* connection, void* data, std::size_t bytes, PtrKind kind) {
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

template <int V>
Result<void*> PluginCollNet<V>::registerDmaBuf(void* connection, void* data, std::size_t bytes, std::uint64_t offset,
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
Result<void*> PluginCollNet<V>::iallreduce(void* connection, const CollNetBuffer& send, const CollNetBuffer& recv,
                                           CollNetReduction reduction) {
  const std::size_t elementBytes = collNetTypeBytes(reduction.type);
  if (elementBytes == 0 || send.bytes % elementBytes != 0) {
    return refuse("iallreduce", connection,
                  fmt::format("{} bytes of data type {}", send.bytes, static_cast<int>(reduction.type)));
  }
  const std::size_t count = send.bytes / elementBytes;
  constexpr std::size_t kMostCounted = std::size_t{1} << 30;  // of versions 6 to 8, in elements
  if (V < 9 && count > kMostCounted) {
    return refuse("iallreduce", connection,
                  fmt::format("{} elements; this version of the interface takes at most {}", count, kMostCounted));
  }
  void* request = nullptr;
  TRY(calls_.check("iallreduce", connection, [&] {
    using Count = std::conditional_t<(V >= 9), std::size_t, int>;
    return table_.iallreduce(connection, send.data, recv.data, static_cast<Count>(count), reduction.type, reduction.op,
                             send.registration, recv.registration, &request);
  }));
  return request;
}

template <int V>
bool PluginCollNet<V>::gathers() const {
  if constexpr (V >= 8) {
    return table_.iallgather != nullptr;
  } else {
    return false;
  }
}

template <int V>
bool PluginCollNet<V>::scatters() const {
  if constexpr (V >= 8) {
    return table_.ireducescatter != nullptr;
  } else {
    return false;
  }
}

/// A piece of memory in the form of a version, 8 or newer.
template <int V>
auto collNetPart(const CollNetBuffer& buffer) {
  using Part = std::conditional_t<V == 8, ncclNetSGE_v8_t, ncclNetSGE_v9_t>;
  Part part{};
  part.mhandle = buffer.registration;
  part.address = buffer.data;
  part.size = static_cast<decltype(part.size)>(buffer.bytes);
  return part;
}

template <int V>
Result<void*> PluginCollNet<V>::iallgather(void* connection, const CollNetBuffer& send, const CollNetBuffer& recv,
                                           const CollNetWindow& window) {
  if (!gathers()) return refuse("iallgather", connection, "the network has no such function");
  TRY(checkPart("iallgather", connection, recv.bytes));
  void* request = nullptr;
  if constexpr (V >= 8) {
    auto part = collNetPart<V>(recv);
    TRY(calls_.check("iallgather", connection, [&] {
      return table_.iallgather(connection, send.data, 1, &part, window.bytesPerRank, window.offset, window.bytes,
                               send.registration, &request);
    }));
  }
  return request;
}

template <int V>
Result<void*> PluginCollNet<V>::ireducescatter(void* connection, const CollNetBuffer& send, const CollNetBuffer& recv,
                                               const CollNetWindow& window, CollNetReduction reduction) {
  if (!scatters()) return refuse("ireducescatter", connection, "the network has no such function");
  TRY(checkPart("ireducescatter", connection, send.bytes));
  void* request = nullptr;
  if constexpr (V >= 8) {
    auto part = collNetPart<V>(send);
    TRY(calls_.check("ireducescatter", connection, [&] {
      return table_.ireducescatter(connection, 1, &part, recv.data, window.bytesPerRank, window.offset, window.bytes,
                                   reduction.type, reduction.op, recv.registration, &request);
    }));
  }
  return request;
}

template <int V>
Result<void*> PluginCollNet<V>::iflush(void* connection, const CollNetBuffer& received) {
  void* request = nullptr;
  TRY(calls_.check("iflush", connection, [&] {
    return table_.iflush(connection, received.data, static_cast<int>(received.bytes), received.registration, &request);
  }));
  return request;
}

template <int V>
Result<bool> PluginCollNet<V>::test(void* request, int* bytes) {
  std::array<int, kMostReceives> sizes{};
  int done = 0;
  TRY(calls_.check("test", nullptr, [&] { return table_.test(request, &done, sizes.data()); }));
  if (done != 0 && bytes != nullptr) *bytes = sizes[0];
  return done != 0;
}

template <int V>
bool PluginCollNet<V>::fuses() const {
  if constexpr (V >= 9) {
    return table_.makeVDevice != nullptr;
  } else {
    return false;
  }
}

template <int V>
Result<int> PluginCollNet<V>::makeVirtual(std::span<const int> devices) {
  if (!fuses()) return calls_.refuse(ncclInvalidUsage, "makeVDevice", kNoDevice, "the network fuses no devices");
  if (devices.size() > static_cast<std::size_t>(maxFused())) {
    return calls_.refuse(ncclInvalidUsage, "makeVDevice", kNoDevice,
                         fmt::format("{} devices; at most {} become one", devices.size(), maxFused()));
  }
  int fused = kNoDevice;
  if constexpr (V >= 9) {
    auto list = fusedList<V>(devices);
    TRY(calls_.check("makeVDevice", nullptr, [&] { return table_.makeVDevice(&fused, &list); }));
  }
  return fused;
}

/// The collNet of version V in a library.
template <int V>
class LoadedCollNetOf final : public LoadedCollNet {
  using Table = typename NetVersion<V>::CollNet;

 public:
  LoadedCollNetOf(const Table& exported, const std::string& path)
      : exported_(exported), who_{exported.name, "collNet", V, path} {}

  std::string_view name() const override { return who_.name; }
  int version() const override { return V; }
  NetAttempt<CollNet> attempt(const NetOpening& opening) override {
    auto net = std::make_unique<PluginCollNet<V>>(who_, shared_);
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
