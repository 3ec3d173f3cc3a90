// Status and Result: how every function of tutti says whether it worked.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#ifndef NCCL_NO_CUDA_HEADERS
#define NCCL_NO_CUDA_HEADERS  // the library knows the runtime's stream type only as a pointer
#endif
#include "nccl.h"

namespace tutti {

/// Outcome of an operation: success or one error code of the public API. Four bytes, trivially copyable.
/// `ncclInProgress` is not an error and never travels in a Status. Born through `fail()` (base/log.h) only.
class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr explicit Status(ncclResult_t code) : code_(code) {}

  constexpr bool ok() const { return code_ == ncclSuccess; }
  constexpr ncclResult_t code() const { return code_; }
  friend constexpr bool operator==(Status, Status) = default;

  /// Drops the status on purpose: for clean-up paths that have nobody left to tell.
  constexpr void ignore() const {}

 private:
  ncclResult_t code_ = ncclSuccess;
};
static_assert(sizeof(Status) == 4 && std::is_trivially_copyable_v<Status>);

/// A value of type T, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): reads as a return
  Result(Status error) : status_(error) {}       // NOLINT(google-explicit-constructor)

  bool ok() const { return value_.has_value(); }
  Status status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }

 private:
  std::optional<T> value_;
  Status status_;
};

namespace detail {
inline Status statusOf(Status s) {
  return s;
}
template <class T>
Status statusOf(const Result<T>& r) {
  return r.status();
}
}  // namespace detail

}  // namespace tutti

#define TUTTI_CONCAT2(a, b) a##b
#define TUTTI_CONCAT(a, b) TUTTI_CONCAT2(a, b)

/// Evaluates `expr` (a Status or Result) and returns its Status from the enclosing function if it is an error.
#define TRY(...)                                                                                                     \
  do {                                                                                                               \
    if (const ::tutti::Status tryStatus = ::tutti::detail::statusOf(__VA_ARGS__); !tryStatus.ok()) return tryStatus; \
  } while (false)

/// `ASSIGN(auto fd, openFd())`: unwraps a Result into a variable or returns its Status.
#define ASSIGN(target, ...) ASSIGN_VIA(TUTTI_CONCAT(assignResult, __LINE__), target, __VA_ARGS__)
#define ASSIGN_VIA(temporary, target, ...)        \
  auto temporary = (__VA_ARGS__);                 \
  if (!temporary.ok()) return temporary.status(); \
  target = std::move(temporary).value()
