// What threads are in the middle of that may take long, as other threads may read it at any time: for reports of what
// does not go on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace tutti {

/// What one thread is in, at one moment. All texts live as long as the process.
struct Activity {
  const char* wait = nullptr;    ///< it waits for this of a peer; null: for nothing
  int peer = -1;                 ///< the peer's rank; -1: none in particular
  const char* call = nullptr;    ///< the last call of a plugin; null: none since its last wait began
  const char* callee = nullptr;  ///< which plugin
  int device = -1;               ///< of that call; -1: none
  bool inCall = false;           ///< that call has not returned
  std::uint64_t calls = 0;       ///< differs whenever another call began or ended
};

/// One thread's place to say so: a few stores of its own. Places are never freed: a thread that ends leaves its own to
/// another.
class ActivitySlot {
 public:
  /// The calling thread's.
  static ActivitySlot& own() noexcept;
  /// Of all threads that ever said something.
  static void forEach(const std::function<void(const ActivitySlot& slot)>& look);

  /// Any thread. What changes while it is read may be mixed.
  Activity read() const;

 private:
  friend class WaitNote;
  friend class CallNote;
  friend struct OwnedSlot;

  std::atomic<const char*> wait_{nullptr};
  std::atomic<int> peer_{-1};
  std::atomic<const char*> call_{nullptr};
  std::atomic<const char*> callee_{nullptr};
  std::atomic<int> device_{-1};
  std::atomic<bool> inCall_{false};
  std::atomic<std::uint64_t> calls_{0};
};

/// While it lives this thread waits for a peer: "its end of the connection", of rank 3. `what` is a literal.
class WaitNote {
 public:
  WaitNote(const char* what, int peer) noexcept;
  WaitNote(const WaitNote&) = delete;
  WaitNote& operator=(const WaitNote&) = delete;
  ~WaitNote();
  /// It waits for this from now on.
  void now(const char* what, int peer) noexcept;

 private:
  ActivitySlot& slot_;
  const char* const before_;
  const int peerBefore_;
};

/// While it lives this thread is in a call of a plugin. `call` is a literal; `callee` lives for ever.
class CallNote {
 public:
  CallNote(const char* call, const char* callee, int device) noexcept : slot_(ActivitySlot::own()) {
    slot_.call_.store(call, std::memory_order_relaxed);
    slot_.callee_.store(callee, std::memory_order_relaxed);
    slot_.device_.store(device, std::memory_order_relaxed);
    slot_.inCall_.store(true, std::memory_order_relaxed);
    turn();
  }
  CallNote(const CallNote&) = delete;
  CallNote& operator=(const CallNote&) = delete;
  ~CallNote() {
    slot_.inCall_.store(false, std::memory_order_relaxed);
    turn();
  }

 private:
  void turn() noexcept {
    slot_.calls_.store(slot_.calls_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  ActivitySlot& slot_;
};

}  // namespace tutti
