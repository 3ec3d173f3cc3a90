// Values of enumerations as callers in C pass them: any number.
#pragma once

#include <cstring>

#include "nccl.h"

namespace tutti::api {

/// What lies there, which need not be a value of the enumeration; reading it as one would be undefined.
template <class Enumeration>
int numberIn(const Enumeration& place) {
  int number = 0;
  static_assert(sizeof(number) == sizeof(place));
  std::memcpy(&number, &place, sizeof(number));
  return number;
}

/// Whether a type of elements lies there.
inline bool isType(const ncclDataType_t& place) {
  const int number = numberIn(place);
  return number >= 0 && number < ncclNumTypes;
}

}  // namespace tutti::api
