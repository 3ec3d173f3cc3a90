// Element types as tests see them: numbers of any of them as doubles, and the type that a number of nccl.h stands for.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "device/number/float16_host.h"
#include "device/number/float8.h"
#include "nccl.h"

namespace tutti::device::test {

inline double asDouble(Half h) {
  return toFloat(h);
}
inline double asDouble(BFloat16 b) {
  return toFloat(b);
}
inline double asDouble(Float8E4M3 e) {
  return toFloat(e);
}
inline double asDouble(Float8E5M2 e) {
  return toFloat(e);
}
template <class T>
inline double asDouble(T value) {
  return static_cast<double>(value);
}
template <class T>
T fromDouble(double value) {
  if constexpr (std::is_same_v<T, Half>) {
    return toHalf(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return toBFloat16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, Float8E4M3> || std::is_same_v<T, Float8E5M2>) {
    return toFloat8<T>(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

/// Calls f<T>() for the type. Ends the program if there is no such type.
template <class F>
void withType(ncclDataType_t type, F f) {
  switch (type) {
    case ncclInt8:
      return f.template operator()<std::int8_t>();
    case ncclUint8:
      return f.template operator()<std::uint8_t>();
    case ncclInt32:
      return f.template operator()<std::int32_t>();
    case ncclUint32:
      return f.template operator()<std::uint32_t>();
    case ncclInt64:
      return f.template operator()<std::int64_t>();
    case ncclUint64:
      return f.template operator()<std::uint64_t>();
    case ncclFloat16:
      return f.template operator()<Half>();
    case ncclFloat32:
      return f.template operator()<float>();
    case ncclFloat64:
      return f.template operator()<double>();
    case ncclBfloat16:
      return f.template operator()<BFloat16>();
    case ncclFloat8e4m3:
      return f.template operator()<Float8E4M3>();
    case ncclFloat8e5m2:
      return f.template operator()<Float8E5M2>();
    case ncclNumTypes:
      break;
  }
  std::abort();
}

}  // namespace tutti::device::test
