#include "bench/datatypes.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <sstream>

namespace bench {
namespace {

struct TypeInfo {
  const char* name;
  std::size_t size;
  int mantissa;  ///< explicit bits of a floating type, 0 for integers
  int exponent;  ///< bits
};

constexpr std::array<TypeInfo, ncclNumTypes> kTypes{{{"int8", 1, 0, 0},
                                                     {"uint8", 1, 0, 0},
                                                     {"int32", 4, 0, 0},
                                                     {"uint32", 4, 0, 0},
                                                     {"int64", 8, 0, 0},
                                                     {"uint64", 8, 0, 0},
                                                     {"half", 2, 10, 5},
                                                     {"float", 4, 23, 8},
                                                     {"double", 8, 52, 11},
                                                     {"bfloat16", 2, 7, 8},
                                                     {"f8e4m3", 1, 3, 4},
                                                     {"f8e5m2", 1, 2, 5}}};

constexpr std::array<const char*, ncclNumOps> kOps{"sum", "prod", "max", "min", "avg"};

/// Bits of a value that the small format holds exactly (the benchmarks only encode such values).
std::uint32_t encodeSmall(const TypeInfo& type, double value) {
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  const int bias = (1 << (type.exponent - 1)) - 1;
  const auto mantissa = static_cast<std::uint32_t>(std::lround((fraction * 2 - 1) * (1 << type.mantissa)));
  const std::uint32_t sign = value < 0 ? 1u << (type.exponent + type.mantissa) : 0;
  return sign | ((static_cast<std::uint32_t>(exponent - 1 + bias) << type.mantissa) + mantissa);
}

double decodeSmall(const TypeInfo& type, std::uint32_t bits) {
  const int bias = (1 << (type.exponent - 1)) - 1;
  const int exponent = static_cast<int>(bits >> type.mantissa) & ((1 << type.exponent) - 1);
  const double mantissa = static_cast<double>(bits & ((1u << type.mantissa) - 1)) / (1 << type.mantissa);
  const double sign = (bits >> (type.mantissa + type.exponent)) & 1 ? -1 : 1;
  const bool isE4m3 = type.exponent == 4;  // its largest exponent holds numbers, and one NaN
  if (isE4m3 && (bits & 0x7f) == 0x7f) return std::nan("");
  if (exponent == (1 << type.exponent) - 1 && !isE4m3) return mantissa != 0 ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias);
  return sign * std::ldexp(1 + mantissa, exponent - bias);
}

template <class T>
void put(void* array, std::size_t index, T value) {
  std::memcpy(static_cast<char*>(array) + index * sizeof(T), &value, sizeof(T));
}

template <class T>
T get(const void* array, std::size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(array) + index * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

std::size_t typeSize(ncclDataType_t type) {
  return kTypes[type].size;
}
const char* typeName(ncclDataType_t type) {
  return kTypes[type].name;
}
const char* opName(ncclRedOp_t op) {
  return kOps[op];
}
bool isFloating(ncclDataType_t type) {
  return kTypes[type].mantissa != 0;
}
bool isFp8(ncclDataType_t type) {
  return type == ncclFloat8e4m3 || type == ncclFloat8e5m2;
}

bool parseTypes(const std::string& names, std::vector<ncclDataType_t>* types) {
  types->clear();
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    const std::size_t before = types->size();
    for (std::size_t i = 0; i < kTypes.size(); ++i) {
      if (name == "all" || name == kTypes[i].name) types->push_back(static_cast<ncclDataType_t>(i));
    }
    if (types->size() == before) return false;
  }
  return !types->empty();
}

bool parseOps(const std::string& names, std::vector<ncclRedOp_t>* ops) {
  ops->clear();
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    const std::size_t before = ops->size();
    for (std::size_t i = 0; i < kOps.size(); ++i) {
      if (name == "all" || name == kOps[i]) ops->push_back(static_cast<ncclRedOp_t>(i));
    }
    if (ops->size() == before) return false;
  }
  return !ops->empty();
}

void encode(ncclDataType_t type, double value, void* array, std::size_t index) {
  switch (type) {
    case ncclInt8:
      return put(array, index, static_cast<std::int8_t>(static_cast<std::int64_t>(value)));
    case ncclUint8:
      return put(array, index, static_cast<std::uint8_t>(static_cast<std::int64_t>(value)));
    case ncclInt32:
      return put(array, index, static_cast<std::int32_t>(value));
    case ncclUint32:
      return put(array, index, static_cast<std::uint32_t>(value));
    case ncclInt64:
      return put(array, index, static_cast<std::int64_t>(value));
    case ncclUint64:
      return put(array, index, static_cast<std::uint64_t>(value));
    case ncclFloat32:
      return put(array, index, static_cast<float>(value));
    case ncclFloat64:
      return put(array, index, value);
    case ncclFloat16:
    case ncclBfloat16:
      return put(array, index, static_cast<std::uint16_t>(encodeSmall(kTypes[type], value)));
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
      return put(array, index, static_cast<std::uint8_t>(encodeSmall(kTypes[type], value)));
    case ncclNumTypes:
      return;
  }
}

double decode(ncclDataType_t type, const void* array, std::size_t index) {
  switch (type) {
    case ncclInt8:
      return get<std::int8_t>(array, index);
    case ncclUint8:
      return get<std::uint8_t>(array, index);
    case ncclInt32:
      return get<std::int32_t>(array, index);
    case ncclUint32:
      return get<std::uint32_t>(array, index);
    case ncclInt64:
      return static_cast<double>(get<std::int64_t>(array, index));
    case ncclUint64:
      return static_cast<double>(get<std::uint64_t>(array, index));
    case ncclFloat32:
      return get<float>(array, index);
    case ncclFloat64:
      return get<double>(array, index);
    case ncclFloat16:
    case ncclBfloat16:
      return decodeSmall(kTypes[type], get<std::uint16_t>(array, index));
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
      return decodeSmall(kTypes[type], get<std::uint8_t>(array, index));
    case ncclNumTypes:
      return 0;
  }
  return 0;
}

double tolerance(ncclDataType_t type, int ranks) {
  return isFloating(type) ? (ranks + 1) * std::ldexp(1.0, -kTypes[type].mantissa - 1) : 0;
}

}  // namespace bench
