// How much device memory somebody has, by what becomes of it while that somebody is suspended.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace tutti::gpu {

/// What becomes of memory while its communicator is suspended.
enum class MemoryClass : std::uint8_t {
  Persistent,  ///< stays, at its address: what graphs refer to
  Releasable,  ///< goes, with all that is in it, and is made anew
};
inline constexpr std::size_t kMemoryClasses = 2;

/// Bytes of device memory that live, by class. Any thread.
class MemoryLedger {
 public:
  /// One allocation; booked out when it goes.
  class Entry {
   public:
    Entry(std::shared_ptr<MemoryLedger> ledger, MemoryClass kind, std::size_t bytes)
        : ledger_(std::move(ledger)), kind_(kind), bytes_(bytes) {
      ledger_->place(kind_).fetch_add(bytes_, std::memory_order_relaxed);
    }
    Entry(const Entry&) = delete;
    ~Entry() { ledger_->place(kind_).fetch_sub(bytes_, std::memory_order_relaxed); }

   private:
    std::shared_ptr<MemoryLedger> ledger_;
    MemoryClass kind_;
    std::size_t bytes_;
  };

  std::size_t bytes(MemoryClass kind) const {
    return bytes_[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::size_t>& place(MemoryClass kind) { return bytes_[static_cast<std::size_t>(kind)]; }
  std::array<std::atomic<std::size_t>, kMemoryClasses> bytes_{};
};

/// What memory is for, and in whose ledger it is booked; a string stands for memory that is in none.
struct MemoryUse {
  std::string_view about;                     ///< for errors: "slots of channel 3 from rank 1"
  std::shared_ptr<MemoryLedger> ledger = {};  ///< null: in none
  MemoryClass kind = MemoryClass::Releasable;

  MemoryUse(const char* what) : about(what) {}
  MemoryUse(std::string_view what) : about(what) {}
  MemoryUse(const std::string& what) : about(what) {}
  MemoryUse(std::string_view what, std::shared_ptr<MemoryLedger> where, MemoryClass which = MemoryClass::Releasable)
      : about(what), ledger(std::move(where)), kind(which) {}
};

}  // namespace tutti::gpu
