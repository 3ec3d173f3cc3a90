// What a NIC has said on its own: ports that went down, queue pairs and devices that failed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "base/clock.h"

namespace tutti::net::ib {

/// Written by the thread that hears the NIC's events, read by connections. Any thread.
class NicHealth {
 public:
  static constexpr int kMostPorts = 8;

  /// Grows with every change: whoever has seen it need not look again.
  std::uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

  void portDown(int port);
  void portUp(int port);
  /// Since when it is down; empty text and time where it is up.
  bool isDown(int port, SteadyClock::time_point* since) const;

  /// The whole NIC has failed, for good.
  void deviceFailed(std::string why);
  std::string deviceFailure() const;
  void queuePairFailed(std::uint32_t number, std::string why);
  /// "": nothing was said of it.
  std::string failureOf(std::uint32_t queuePair) const;
  /// A number may come again for another queue pair.
  void forget(std::uint32_t queuePair);

 private:
  void changed() { changes_.fetch_add(1, std::memory_order_release); }
  static std::size_t placeOf(int port) { return static_cast<std::size_t>(port) % kMostPorts; }

  std::atomic<std::uint64_t> changes_{0};
  mutable std::mutex mutex_;
  std::array<SteadyClock::time_point, kMostPorts> downSince_{};  ///< the epoch: it is up
  std::string device_;
  std::map<std::uint32_t, std::string> queuePairs_;
};

}  // namespace tutti::net::ib
