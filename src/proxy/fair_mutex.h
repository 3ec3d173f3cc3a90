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
      const bool wanted = turns.wanted_.load(std::memory_order_relaxed);
      if (won() && (wanted || turns.served_ < turns.arrived_.load(std::memory_order_acquire))) lock_.unlock();
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
    explicit Round(Turns& turns, Who who = Who::Waits) : lock_(turns.mutex_, std::try_to_lock) {
      if (!won() && who == Who::Tries) return;
      if (!won()) {
        turns.wanted_.store(true, std::memory_order_relaxed);
        lock_.lock();
        turns.wanted_.store(false, std::memory_order_relaxed);
      }
      const std::uint64_t before = turns.arrived_.load(std::memory_order_acquire);
      turns.left_.wait(lock_, [&] { return turns.served_ >= before; });
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
