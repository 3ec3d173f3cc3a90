// A lock that one thread takes again and again, and that others get at its next turn all the same.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace tutti::proxy {

/// The engine's thread holds it for a round, the others for a visit. A plain mutex would let the engine, which unlocks
/// only to lock again, starve them; here a round begins only when all visitors have been served that had come before.
/// So a visitor waits for the round under way at most, and no storm of visitors keeps the engine out for ever.
class FairMutex {
 public:
  /// Any thread but the engine's.
  class Visit {
   public:
    explicit Visit(FairMutex& owner) : owner_(owner) {
      owner_.arrived_.fetch_add(1, std::memory_order_acq_rel);
      owner_.mutex_.lock();
    }
    ~Visit() {
      ++owner_.served_;
      owner_.mutex_.unlock();
      owner_.left_.notify_one();
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

   private:
    FairMutex& owner_;
  };

  /// A round of any other thread: only where nobody is in one and nobody wants to visit. Never waits. Not for a thread
  /// that is in one.
  class Attempt {
   public:
    explicit Attempt(FairMutex& owner) : lock_(owner.mutex_, std::try_to_lock) {
      const bool wanted = owner.wanted_.load(std::memory_order_relaxed);
      if (won() && (wanted || owner.served_ < owner.arrived_.load(std::memory_order_acquire))) lock_.unlock();
    }
    bool won() const { return lock_.owns_lock(); }

   private:
    std::unique_lock<std::mutex> lock_;
  };

  enum class Who : std::uint8_t { Waits, Tries };
  /// The engine's thread. `Waits`: for others' rounds and visits, no more than one attempt begins meanwhile. `Tries`:
  /// there may be none where another thread is in one.
  class Round {
   public:
    explicit Round(FairMutex& owner, Who who = Who::Waits) : lock_(owner.mutex_, std::try_to_lock) {
      if (!won() && who == Who::Tries) return;
      if (!won()) {
        owner.wanted_.store(true, std::memory_order_relaxed);
        lock_.lock();
        owner.wanted_.store(false, std::memory_order_relaxed);
      }
      const std::uint64_t before = owner.arrived_.load(std::memory_order_acquire);
      owner.left_.wait(lock_, [&] { return owner.served_ >= before; });
    }
    bool won() const { return lock_.owns_lock(); }

   private:
    std::unique_lock<std::mutex> lock_;
  };

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  std::atomic<std::uint64_t> arrived_{0};
  std::atomic<bool> wanted_{false};  ///< by the engine's thread, which waits
  std::uint64_t served_ = 0;         ///< under mutex_
};

}  // namespace tutti::proxy
