// Plain values one behind the other, as messages hold them: written, and read back with every length checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tutti::ras {

using Bytes = std::vector<std::byte>;

/// Appends values. Not thread-safe.
class ByteWriter {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void putText(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  std::size_t size() const { return bytes_.size(); }
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

/// Takes values from bytes of a stranger. After the first one that is not there nothing is: ok() tells. Not
/// thread-safe.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (rest_.size() < sizeof(T)) {
      fail();
    } else {
      std::memcpy(static_cast<void*>(&value), rest_.data(), sizeof(T));
      rest_ = rest_.subspan(sizeof(T));
    }
    return value;
  }
  /// `length` bytes; empty, and no longer ok(), where there are not so many.
  std::string takeText(std::size_t length) {
    if (length > rest_.size()) fail();
    if (!ok_) return {};
    std::string text(reinterpret_cast<const char*>(rest_.data()), length);
    rest_ = rest_.subspan(length);
    return text;
  }
  /// A number of things of at least `each` bytes; 0, and no longer ok(), where there are not so many bytes.
  std::size_t takeCount(std::size_t each) {
    const auto count = take<std::uint32_t>();
    if (count > rest_.size() / each) fail();
    return ok_ ? count : 0;
  }
  void fail() {
    ok_ = false;
    rest_ = {};
  }
  bool ok() const { return ok_; }
  /// All was well, and nothing is left.
  bool done() const { return ok_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace tutti::ras
