// The functions that threads call while kernels wait (softgpu/idle_hook.h).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace tutti::softgpu {

struct IdleHook {
  int (*turn)(void* argument) = nullptr;
  void (*leave)(void* argument) = nullptr;
  void* argument = nullptr;
};

/// A few hooks that any thread adds and removes, and that others call without a lock. A thread within a hook calls
/// none.
class IdleHooks {
 public:
  /// A ticket, or none when all places are taken.
  std::optional<std::uint64_t> add(const IdleHook& hook);
  /// False for what is no ticket of a hook that is there. Waits until nobody is in the hook.
  bool remove(std::uint64_t ticket);

  /// Whether any hook did something.
  bool turn();
  void leave();

 private:
  static constexpr std::size_t kPlaces = 64;
  struct Place {
    std::atomic<bool> taken{false};
    std::atomic<std::uint32_t> inside{0};  ///< threads that are in the hook, or about to see that they must not be
    IdleHook hook{};                       ///< written while not taken and nobody is inside
  };
  /// Calls `body` with each hook.
  template <class Body>
  void each(Body body);

  std::array<Place, kPlaces> places_;
  std::atomic<std::size_t> used_{0};  ///< places behind it have never been taken
  std::mutex change_;
};

}  // namespace tutti::softgpu
