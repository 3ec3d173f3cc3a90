#include "differential/numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "bench/datatypes.h"
#include "differential/operation.h"

namespace differential {
namespace {

/// Whole numbers up to this one, and their sums and halves up to it, are exact in the type.
int exactUpTo(ncclDataType_t type) {
  switch (type) {
    case ncclFloat8e5m2:
      return 8;
    case ncclFloat8e4m3:
      return 16;
    case ncclBfloat16:
      return 256;
    default:
      return 2048;
  }
}

/// Factors of kPreMulSum are 1 or 2 where the type has room for both.
int largestFactor(ncclDataType_t type) {
  return type == ncclFloat8e5m2 ? 1 : 2;
}

double anyFinite(Dice& dice, ncclDataType_t type, std::uint8_t* out) {
  const std::size_t size = bench::typeSize(type);
  for (;;) {
    const std::uint64_t bits = dice.next();
    std::memcpy(out, &bits, size);
    const double value = bench::decode(type, out, 0);
    if (std::isfinite(value) && (value != 0 || !std::signbit(value))) return value;
  }
}

double floatInput(Dice& dice, ncclDataType_t type, ncclRedOp_t op, int ranks) {
  if (op == ncclProd) {
    const double value = dice.below(4) == 0 ? 2 : 1;
    return dice.chance(50) ? value : -value;
  }
  const int share = exactUpTo(type) / ranks / (op == kPreMulSum ? largestFactor(type) : 1);
  const int most = std::clamp(share, 1, 100);
  if (op == kPreMulSum || !isExact(type, op, ranks)) return 1 + dice.below(most);  // (no zero with a sign)
  return dice.below(2 * most + 1) - most;
}

std::uint64_t load(ncclDataType_t type, const std::uint8_t* from, std::size_t i) {
  const std::size_t size = bench::typeSize(type);
  std::uint64_t value = 0;
  std::memcpy(&value, from + i * size, size);
  const bool isSigned = type == ncclInt8 || type == ncclInt32 || type == ncclInt64;
  const auto unused = static_cast<unsigned>(64 - 8 * size);
  if (!isSigned) return value;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
}

bool isSmaller(ncclDataType_t type, std::uint64_t a, std::uint64_t b) {
  if (type == ncclInt8 || type == ncclInt32 || type == ncclInt64)
    return static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
  return a < b;
}

std::uint64_t reduceInteger(ncclDataType_t type, ncclRedOp_t op, const std::vector<std::vector<std::uint8_t>>& inputs,
                            const std::vector<const std::uint8_t*>& factors, std::size_t i) {
  std::uint64_t result = 0;
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    std::uint64_t own = load(type, inputs[r].data(), i);
    if (op == kPreMulSum) own *= load(type, factors[r], 0);
    if (r == 0) {
      result = own;
    } else if (op == ncclProd) {
      result *= own;
    } else if (op == ncclMax || op == ncclMin) {
      if (isSmaller(type, result, own) == (op == ncclMax)) result = own;
    } else {
      result += own;
    }
  }
  if (op != ncclAvg) return result;
  std::array<std::uint8_t, 8> cut{};  // the sum has the width of its type before it is divided
  std::memcpy(cut.data(), &result, bench::typeSize(type));
  const std::uint64_t sum = load(type, cut.data(), 0);
  if (type == ncclInt8 || type == ncclInt32 || type == ncclInt64)
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(sum) / static_cast<std::int64_t>(inputs.size()));
  return sum / inputs.size();
}

double reduceFloat(ncclDataType_t type, ncclRedOp_t op, const std::vector<std::vector<std::uint8_t>>& inputs,
                   const std::vector<const std::uint8_t*>& factors, std::size_t i) {
  double result = 0;
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    double own = bench::decode(type, inputs[r].data(), i);
    if (op == kPreMulSum) own *= bench::decode(type, factors[r], 0);
    if (r == 0) {
      result = own;
    } else if (op == ncclProd) {
      result *= own;
    } else if (op == ncclMax || op == ncclMin) {
      result = op == ncclMax ? std::max(result, own) : std::min(result, own);
    } else {
      result += own;
    }
  }
  return op == ncclAvg ? result / static_cast<double>(inputs.size()) : result;
}

/// The bits of the input that has the value: any finite number is right for max and min, not only what encode() knows.
void copyOf(double value, ncclDataType_t type, const std::vector<std::vector<std::uint8_t>>& inputs, std::size_t i,
            std::uint8_t* out) {
  const std::size_t size = bench::typeSize(type);
  for (const auto& input : inputs) {
    if (bench::decode(type, input.data(), i) != value) continue;
    std::memcpy(out + i * size, input.data() + i * size, size);
    return;
  }
}

}  // namespace

bool isExact(ncclDataType_t type, ncclRedOp_t op, int ranks) {
  return op != ncclAvg || !bench::isFloating(type) || (ranks & (ranks - 1)) == 0;
}

void fillInput(Dice& dice, ncclDataType_t type, ncclRedOp_t op, int ranks, std::size_t count, std::uint8_t* out) {
  const std::size_t size = bench::typeSize(type);
  if (!bench::isFloating(type)) {
    for (std::size_t at = 0; at < count * size; at += 8) {
      const std::uint64_t bits = dice.next();
      std::memcpy(out + at, &bits, std::min<std::size_t>(8, count * size - at));
    }
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (op == ncclMax || op == ncclMin) {
      anyFinite(dice, type, out + i * size);
    } else {
      bench::encode(type, floatInput(dice, type, op, ranks), out, i);
    }
  }
}

void fillFactor(Dice& dice, ncclDataType_t type, std::uint8_t* out) {
  const std::uint64_t bits = dice.next();
  if (bench::isFloating(type)) {
    bench::encode(type, 1 + dice.below(largestFactor(type)), out, 0);
  } else {
    std::memcpy(out, &bits, bench::typeSize(type));
  }
}

void reduce(ncclDataType_t type, ncclRedOp_t op, const std::vector<std::vector<std::uint8_t>>& inputs,
            const std::vector<const std::uint8_t*>& factors, std::size_t count, std::uint8_t* out,
            std::vector<double>* values) {
  const std::size_t size = bench::typeSize(type);
  const bool exact = isExact(type, op, static_cast<int>(inputs.size()));
  values->assign(exact ? 0 : count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    if (!bench::isFloating(type)) {
      const std::uint64_t result = reduceInteger(type, op, inputs, factors, i);
      std::memcpy(out + i * size, &result, size);
      continue;
    }
    const double result = reduceFloat(type, op, inputs, factors, i);
    if (!exact) {
      (*values)[i] = result;
    } else if (op == ncclMax || op == ncclMin) {
      copyOf(result, type, inputs, i, out);
    } else {
      bench::encode(type, result, out, i);
    }
  }
}

}  // namespace differential
