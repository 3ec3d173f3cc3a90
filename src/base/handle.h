// One RAII template for every handle of the operating system, CUDA, or a C library.
#pragma once

#include <utility>

namespace tutti {

/// Owns one handle. Traits give `using Type`, `static Type invalid()`, and `static void close(Type)`; where they have
/// `static Type taken(Type)`, what is taken over goes through it.
/// Move-only; moving leaves the source invalid; assigning closes what was held. Not thread-safe.
template <class Traits>
class Handle {
 public:
  using Type = typename Traits::Type;

  Handle() = default;
  explicit Handle(Type raw) : raw_(taken(raw)) {}
  Handle(Handle&& other) noexcept : raw_(other.release()) {}
  Handle& operator=(Handle&& other) noexcept {
    Handle(std::move(other)).swap(*this);
    return *this;
  }
  /// What close() throws ends here: it has no memory to say what went wrong, and a program must not end for that.
  ~Handle() {
    if (!valid()) return;
    try {
      Traits::close(raw_);
    } catch (...) {
    }
  }

  Type get() const { return raw_; }
  bool valid() const { return raw_ != Traits::invalid(); }
  /// Gives up ownership: the caller closes it.
  [[nodiscard]] Type release() { return std::exchange(raw_, Traits::invalid()); }
  void reset() { Handle().swap(*this); }
  void swap(Handle& other) noexcept { std::swap(raw_, other.raw_); }
  /// An fd 0 must not read as "none": ask valid().
  explicit operator bool() const = delete;

 private:
  static Type taken(Type raw) {
    if constexpr (requires { Traits::taken(raw); }) return Traits::taken(raw);
    return raw;
  }

  Type raw_ = Traits::invalid();
};

}  // namespace tutti
