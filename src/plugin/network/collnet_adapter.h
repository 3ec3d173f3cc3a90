// One version of the collNet interface as a CollNet. Where versions differ, the difference stands as `if constexpr`.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "plugin/network/collnet.h"
#include "plugin/network/plugin_adapter.h"

namespace tutti::plugin {

/// One communicator's use of a collNet of version V.
template <int V>
class PluginCollNet final : public PluginAdapter<V, CollNet, typename NetVersion<V>::CollNet> {
  using Base = PluginAdapter<V, CollNet, typename NetVersion<V>::CollNet>;

 public:
  using typename Base::Table;
  static constexpr const char* kKind = "collNet";
  using Base::Base;

  /// As with PluginNet.
  NetAttempt<CollNet> begin(const Table& exported, const NetOpening& opening);
  NetAttempt<CollNet> examine() { return this->examineTable(missing()); }

  Result<NetProperties> properties(int device) override;

  Result<void*> connect(std::span<NetHandle> handles, int rank, void* listener) override;
  Status close(void* connection) override { return this->closeEnd("closeColl", table_.closeColl, connection); }

  Result<bool> reduces(CollNetReduction reduction) override;
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

 private:
  const char* missing() const;
  /// Pieces of version 8 have a size of 32 bits and end at 512 MiB.
  Status checkPart(const char* call, const void* connection, std::size_t bytes) const {
    if (V != 8 || bytes <= static_cast<std::size_t>(MAX_COLLNET_SIZE)) return {};
    return refuse(call, connection,
                  fmt::format("{} bytes; this version of the interface takes at most {}", bytes, MAX_COLLNET_SIZE));
  }

  using Base::calls_;
  using Base::context_;
  using Base::refuse;
  using Base::shared_;
  using Base::table_;
};

template <int V>
NetAttempt<CollNet> PluginCollNet<V>::begin(const Table& exported, const NetOpening& opening) {
  forgetPluginWarning();
  ncclResult_t code = ncclSuccess;
  if constexpr (V >= 11) {
    code = calls_.noted("init", kNoDevice, [&] { return exported.init(&context_, opening.commId, &pluginLog); });
  } else {
    code = shared_.enter([&] { return calls_.noted("init", kNoDevice, [&] { return exported.init(&pluginLog); }); });
  }
  return this->begun(code, exported);
}

template <int V>
const char* PluginCollNet<V>::missing() const {
  return Base::firstMissing({{"devices", table_.devices != nullptr},
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
                             {"closeListen", table_.closeListen != nullptr}});
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
  if constexpr (V >= 8) return table_.iallgather != nullptr;
  return false;
}

template <int V>
bool PluginCollNet<V>::scatters() const {
  if constexpr (V >= 8) return table_.ireducescatter != nullptr;
  return false;
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

/// The collNet of version V in a library.
template <int V>
using LoadedCollNetOf = LoadedAdapter<V, CollNet, LoadedCollNet, PluginCollNet<V>>;

}  // namespace tutti::plugin
