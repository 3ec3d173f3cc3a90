// A thread's call of the API, and what else the thread is about.
#pragma once

#include <cstdint>
#include <string_view>

#include "trace/on.h"

namespace tutti::trace {

/// What the calling thread is about.
struct Current {
  std::uint64_t begin = 0;  ///< of the call of the API
  std::uint32_t call = 0;   ///< its number, 0: none
  std::uint16_t comm = 0;   ///< of the last communicator that it named
};
Current& current();

/// A call of the API, as long as it lives; `function` lasts for ever. Questions that are answered at once, and succeed,
/// are left out: programs ask them all the time.
class Call {
 public:
  explicit Call(std::string_view function) {
    if (on()) begin(function);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    if (number_ != 0) end();
  }
  void setResult(int code) { result_ = code; }

 private:
  void begin(std::string_view function);
  void end() const;

  std::string_view function_;
  std::uint64_t begin_ = 0;
  std::uint32_t number_ = 0;
  Current before_;
  int result_ = 0;
};

}  // namespace tutti::trace
