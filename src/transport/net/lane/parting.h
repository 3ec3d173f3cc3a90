// How a connection over a network ends in peace where the network wants no receives to be posted when it is closed.
//
// Receives are posted before anybody knows what will come. When nothing will, the sending end answers each of them with
// a message that means nothing. How many there are needs no word: a receiver at rest has posted as many as it can.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace tutti::net {

/// Where one end of it stands. Begun by any thread, looked at by any; the rest is for who makes the engine's rounds.
class Parting {
 public:
  /// A peer that does not take part by then will not.
  static constexpr milliseconds kBound{2000};

  void begin() { begun_.store(true, std::memory_order_release); }
  /// Nothing is left to do.
  void end() { over_.store(true, std::memory_order_release); }
  bool pending() const { return begun_.load(std::memory_order_acquire) && !over_.load(std::memory_order_acquire); }
  /// Whether it has been pending for as long as it may.
  bool late() {
    if (!until_) until_ = Deadline::in(kBound);
    return until_->expired();
  }

 private:
  std::atomic<bool> begun_{false};
  std::atomic<bool> over_{false};
  std::optional<Deadline> until_;
};

/// MessageHead::protocol of such a message on a connection of LL and LL128; on one of Simple it has no content.
inline constexpr std::uint32_t kPartingWord = 2;

}  // namespace tutti::net
