// The bound of every size that a call names, checked before anything is computed from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "comm/plan/op.h"

namespace tutti::api {

/// Most bytes of a buffer: no machine has so much memory, and there is room to add, to round up and to multiply by
/// small numbers in 64 bits.
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 60;

/// The larger buffer of a data movement call: elements times their size, and times the ranks where it holds a block of
/// each. The data type must be a valid one. ncclInvalidArgument with the product.
Status checkOpSize(const comm::Op& op, int nRanks);
/// `count` elements of a data type that must be valid; ncclInvalidArgument with the product.
Status checkElements(std::string_view label, std::size_t count, ncclDataType_t type);
/// A size in bytes; ncclInvalidArgument.
Status checkBytes(std::string_view label, std::size_t bytes);

}  // namespace tutti::api
