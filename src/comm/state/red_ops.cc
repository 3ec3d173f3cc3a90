#include "comm/state/red_ops.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/log.h"
#include "device/kernels/kernel_name.h"

namespace tutti::comm {

namespace {

constexpr std::uint32_t kFirstUserOp = ncclNumOps;

/// Rounds a float to a shorter format, nearest even; `mantissaBits` of it are kept. For values in the normal range of
/// the format, which 1/nRanks is for every number of ranks that fits.
std::uint32_t roundMantissa(float value, unsigned mantissaBits) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const unsigned drop = 23 - mantissaBits;
  const std::uint32_t half = (1U << (drop - 1)) - 1 + ((bits >> drop) & 1U);
  return (bits + half) >> drop;
}

/// A float with an exponent bias of 127 to a format with `bias`, subnormals included (1/nRanks may become one).
std::uint64_t encodeSmall(float value, unsigned mantissaBits, int bias) {
  int exponent = 0;
  std::frexp(value, &exponent);
  if (exponent - 1 >= 1 - bias) {
    return roundMantissa(value, mantissaBits) - (static_cast<std::uint32_t>(127 - bias) << mantissaBits);
  }
  const float scaled = std::ldexp(value, bias - 1 + static_cast<int>(mantissaBits));
  return static_cast<std::uint64_t>(std::nearbyint(scaled));
}

}  // namespace

std::uint64_t reciprocalBits(int nRanks, ncclDataType_t type) {
  const float single = 1.0F / static_cast<float>(nRanks);
  if (type == ncclFloat64) return std::bit_cast<std::uint64_t>(1.0 / nRanks);
  if (type == ncclFloat32) return std::bit_cast<std::uint32_t>(single);
  if (type == ncclFloat16) return encodeSmall(single, 10, 15);
  if (type == ncclBfloat16) return roundMantissa(single, 7);
  if (type == ncclFloat8e4m3) return encodeSmall(single, 3, 7);
  if (type == ncclFloat8e5m2) return encodeSmall(single, 2, 15);
  return 0;
}

Result<ncclRedOp_t> RedOpTable::create(const void* scalar, ncclDataType_t type, ncclScalarResidence_t residence) {
  if (scalar == nullptr) return fail(ncclInvalidArgument, "RedOpCreatePreMulSum : scalar argument is NULL");
  UserOp op{type, {device::DevOp::PreMulSum, residence == ncclScalarDevice, 0}};
  if (residence == ncclScalarDevice) {
    op.reduction.scalar = reinterpret_cast<std::uintptr_t>(scalar);
  } else {
    std::memcpy(&op.reduction.scalar, scalar, device::typeBytes(type));
  }
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    if (ops_[i]) continue;
    ops_[i] = op;
    return handleOf(i);
  }
  ops_.push_back(op);
  return handleOf(ops_.size() - 1);
}

Status RedOpTable::destroy(ncclRedOp_t op) {
  const std::lock_guard lock(mutex_);
  const auto index = indexOf(op);
  if (!index) {
    return fail(ncclInvalidArgument, "RedOpDestroy : operator {:#x} unknown to this communicator",
                static_cast<unsigned>(op));
  }
  ops_[*index].reset();
  return {};
}

bool RedOpTable::exists(ncclRedOp_t op) const {
  const std::lock_guard lock(mutex_);
  return indexOf(op).has_value();
}

Result<Reduction> RedOpTable::resolve(ncclRedOp_t op, ncclDataType_t type, int nRanks) const {
  using device::DevOp;
  switch (op) {
    case ncclSum:
      return Reduction{device::DevOp::Sum, false, 0};
    case ncclProd:
      return Reduction{device::DevOp::Prod, false, 0};
    case ncclMax:
      return Reduction{device::DevOp::Max, false, 0};
    case ncclMin:
      return Reduction{device::DevOp::Min, false, 0};
    case ncclAvg:
      if (device::isInteger(type))
        return Reduction{device::DevOp::SumPostDiv, false, static_cast<std::uint64_t>(nRanks)};
      return Reduction{device::DevOp::PreMulSum, false, reciprocalBits(nRanks, type)};
    case ncclNumOps:
    case ncclMaxRedOp:
      break;
  }
  const std::lock_guard lock(mutex_);
  const auto index = indexOf(op);
  if (!index) {
    return fail(ncclInvalidArgument, "reduction operation {:#x} unknown to this communicator",
                static_cast<unsigned>(op));
  }
  const UserOp& user = *ops_[*index];
  if (user.type != type) {
    return fail(ncclInvalidArgument, "Data type {} supplied to a reduction whose operator was made for {}",
                device::typeName(type), device::typeName(user.type));
  }
  return user.reduction;
}

/// Handles are scrambled, yet stay within 5..0x7fffffff: index and mask have 30 bits, and bit 30 is always set.
std::uint32_t RedOpTable::maskOf() const {
  const std::uint64_t mixed = (salt_ ^ (salt_ >> 33)) * 0xff51afd7ed558ccdULL;
  return static_cast<std::uint32_t>(mixed >> 34);
}

ncclRedOp_t RedOpTable::handleOf(std::size_t index) const {
  constexpr std::uint32_t kMarker = 1U << 30;
  return static_cast<ncclRedOp_t>(kMarker | ((static_cast<std::uint32_t>(index) ^ maskOf()) & (kMarker - 1)));
}

std::optional<std::size_t> RedOpTable::indexOf(ncclRedOp_t op) const {
  constexpr std::uint32_t kMarker = 1U << 30;
  const auto value = static_cast<std::uint32_t>(op);
  if (value < kFirstUserOp || (value & kMarker) == 0 || value > 0x7fffffffU) return std::nullopt;
  const std::size_t index = (value ^ maskOf()) & (kMarker - 1);
  if (index >= ops_.size() || !ops_[index]) return std::nullopt;
  return index;
}

}  // namespace tutti::comm
