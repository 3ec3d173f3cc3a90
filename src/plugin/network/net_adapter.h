// One version of the net interface as a Net. Where versions differ, the difference stands as `if constexpr`.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "plugin/network/plugin_adapter.h"
#include "plugin/plugin_log.h"
#include "plugin/profiler.h"

namespace tutti::plugin {

/// One communicator's use of a network of version V.
template <int V>
class PluginNet final : public PluginAdapter<V, Net, typename NetVersion<V>::Net> {
  using Base = PluginAdapter<V, Net, typename NetVersion<V>::Net>;
  using Size = std::conditional_t<(V >= 9), std::size_t, int>;

 public:
  using typename Base::Table;
  static constexpr const char* kKind = "net";
  using Base::Base;

  /// Initialises the network. Not begun and "": never; anything else is why not.
  NetAttempt<Net> begin(const Table& exported, const NetOpening& opening);
  /// Why the network cannot be used; success: it can.
  NetAttempt<Net> examine();

  Result<NetProperties> properties(int device) override;

  Result<void*> connect(int device, NetHandle& handle) override;
  Result<void*> accept(void* listener) override;
  /// The interface does not say that it may be.
  bool closesPosted() const override { return false; }
  bool tellsEvents() const override { return V >= 10; }
  Status closeSend(void* connection) override { return this->closeEnd("closeSend", table_.closeSend, connection); }
  Status closeRecv(void* connection) override { return this->closeEnd("closeRecv", table_.closeRecv, connection); }

  Result<void*> isend(void* connection, const NetBuffer& message) override;
  Result<void*> irecv(void* connection, std::span<const NetBuffer> messages) override;
  Result<void*> iflush(void* connection, std::span<const NetBuffer> messages) override;
  Result<bool> test(void* request, std::span<int> sizes) override;

 private:
  /// The first function that the network must have and has not; null: none.
  const char* missing() const;
  /// Messages of versions 6 to 8 are counted by an int and end at 1 GiB.
  Status checkLength(const char* call, const void* connection, std::size_t bytes) const {
    if (V >= 9 || bytes <= static_cast<std::size_t>(MAX_NET_SIZE)) [[likely]]
      return {};
    return this->refuse(
        call, connection,
        fmt::format("a message of {} bytes; this version of the interface carries at most {}", bytes, MAX_NET_SIZE));
  }
  Status checkNumber(const char* call, const void* connection, std::size_t messages) const {
    if (messages >= 1 && messages <= kMostReceives) [[likely]]
      return {};
    return this->refuse(call, connection, fmt::format("{} messages in one call, not 1 to {}", messages, kMostReceives));
  }

  using Base::calls_;
  using Base::context_;
  using Base::shared_;
  using Base::table_;
  ncclNetCommConfig_v10_t config_{};  // version 10 wants it with each connect()
};

template <int V>
NetAttempt<Net> PluginNet<V>::begin(const Table& exported, const NetOpening& opening) {
  config_.trafficClass = opening.trafficClass;
  forgetPluginWarning();
  ncclResult_t code = ncclSuccess;
  if constexpr (V >= 11) {
    ncclNetCommConfig_v11_t config{opening.trafficClass};
    code = calls_.noted("init", kNoDevice,
                        [&] { return exported.init(&context_, opening.commId, &config, &pluginLog, &netEvent); });
  } else {
    code = shared_.enter([&] {
      return calls_.noted("init", kNoDevice, [&] {
        if constexpr (V == 10) return exported.init(&pluginLog, &netEvent);
        if constexpr (V < 10) return exported.init(&pluginLog);
      });
    });
  }
  return this->begun(code, exported);
}

template <int V>
const char* PluginNet<V>::missing() const {
  return Base::firstMissing({{"devices", table_.devices != nullptr},
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
                             {"closeListen", table_.closeListen != nullptr}});
}

template <int V>
NetAttempt<Net> PluginNet<V>::examine() {
  if (auto examined = this->examineTable(missing()); examined.code != ncclSuccess) return examined;
  auto said = blankProperties<V>();
  if (const ncclResult_t code = table_.getProperties(0, &said); code != ncclSuccess) {
    return this->failed(code, "getProperties", 0);
  }
  const NetProperties first = upgraded(said, 0);
  if (const std::string why = unusableBecause(first); !why.empty()) {
    return this->unusable(fmt::format("device 0 cannot be used: {}", why));
  }
  // Only what receives into GPU memory must be able to flush it.
  const bool gpuMemory = (first.ptrSupport & (NCCL_PTR_CUDA | NCCL_PTR_DMABUF)) != 0;
  if (gpuMemory && table_.iflush == nullptr) return this->unusable("its table has no iflush, which GPU memory needs");
  return {};
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
Result<void*> PluginNet<V>::isend(void* connection, const NetBuffer& message) {
  TRY(checkLength("isend", connection, message.bytes));
  void* request = nullptr;
  TRY(calls_.checkStep("isend", connection, [&] {
    const auto bytes = static_cast<Size>(message.bytes);
    if constexpr (V >= 10) {
      return table_.isend(connection, message.data, bytes, message.tag, message.registration, message.events, &request);
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
  std::array<void*, kMostReceives> events;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    TRY(checkLength("irecv", connection, messages[i].bytes));
    data[i] = messages[i].data;
    sizes[i] = static_cast<Size>(messages[i].bytes);
    tags[i] = messages[i].tag;
    registrations[i] = messages[i].registration;
    events[i] = messages[i].events;
  }
  const int n = static_cast<int>(messages.size());
  void* request = nullptr;  // Neither a hint nor what an older request left there.
  TRY(calls_.checkStep("irecv", connection, [&] {
    if constexpr (V >= 10) {
      return table_.irecv(connection, n, data.data(), sizes.data(), tags.data(), registrations.data(), events.data(),
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
    return this->refuse("iflush", connection, "the network has no such function");
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
  TRY(calls_.checkStep("iflush", connection, [&] {
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
  TRY(calls_.checkStep("test", nullptr, [&] { return table_.test(request, &done, received.data()); }));
  if (done == 0) return false;
  for (std::size_t i = 0; i < std::min(sizes.size(), received.size()); ++i) {
    if (received[i] < 0) {
      return this->refuse("test", nullptr, fmt::format("message {} of a receive has {} bytes", i, received[i]));
    }
    sizes[i] = received[i];
  }
  return true;
}

/// The network of version V in a library.
template <int V>
using LoadedNetOf = LoadedAdapter<V, Net, LoadedNet, PluginNet<V>>;

}  // namespace tutti::plugin
