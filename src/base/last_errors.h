// Texts of errors as ncclGetLastError hands them out.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <string_view>

namespace tutti {

using ErrorText = std::array<char, 1024>;

/// Cut where it is too long.
inline void copyText(std::string_view from, ErrorText& into) {
  const std::size_t bytes = std::min(from.size(), into.size() - 1);
  std::memmove(into.data(), from.data(), bytes);
  into[bytes] = '\0';
}

/// A text and its successors. Callers keep the pointer for ever and read it without a lock, so a new text goes to
/// another slot and the pointer moves: a text changes under its reader only after 15 newer ones.
class LastErrors {
 public:
  /// Where that text now is: what get() returns may be another thread's already. Nothing moves where it is the latest.
  const char* set(std::string_view text) {
    const std::lock_guard lock(mutex_);
    const std::string_view kept = text.substr(0, slots_[0].size() - 1);
    if (kept == slots_[next_].data()) return slots_[next_].data();
    next_ = (next_ + 1) % slots_.size();
    copyText(kept, slots_[next_]);
    current_.store(slots_[next_].data(), std::memory_order_release);
    return slots_[next_].data();
  }
  const char* get() const { return current_.load(std::memory_order_acquire); }

 private:
  std::mutex mutex_;
  std::array<ErrorText, 16> slots_{};
  std::size_t next_ = 0;
  std::atomic<const char*> current_{slots_[0].data()};
};

}  // namespace tutti
