// A lock that one thread takes again and again, and that others get at its next turn all the same.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace tutti {

/// The engine's thread holds it for a round, the others for a visit. A plain mutex would let the engine, which unlocks
/// only to lock again, starve them; here a round begins only when all visitors have been served that had come before.
/// So a visitor waits for the round under way at most, and no storm of visitors keeps the engine out for ever.
class Turns {
 public:
  /// Any thread but the engine's.
  class Visit {
   public:
    explicit Visit(Turns& turns) : turns_(turns) {
      turns_.arrived_.fetch_add(1, std::memory_order_acq_rel);
      turns_.mutex_.lock();
    }
    ~Visit() {
      ++turns_.served_;
      turns_.mutex_.unlock();
      turns_.left_.notify_one();
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

   private:
    Turns& turns_;
  };

  /// A round of any other thread: only where nobody is in one and nobody wants to visit. Never waits. Not for a thread
  /// that is in one.
  class Attempt {
   public:
    explicit Attempt(Turns& turns) : lock_(turns.mutex_, std::try_to_lock) {
      if (won() && turns.served_ < turns.arrived_.load(std::memory_order_acquire)) lock_.unlock();
    }
    bool won() const { return lock_.owns_lock(); }

   private:
    std::unique_lock<std::mutex> lock_;
  };

  /// The engine's thread.
  class Round {
   public:
    explicit Round(Turns& turns) : lock_(turns.mutex_) {
      const std::uint64_t before = turns.arrived_.load(std::memory_order_acquire);
      turns.left_.wait(lock_, [&] { return turns.served_ >= before; });
    }

   private:
    std::unique_lock<std::mutex> lock_;
  };

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  std::atomic<std::uint64_t> arrived_{0};
  std::uint64_t served_ = 0;  ///< under mutex_
};

}  // namespace tutti
