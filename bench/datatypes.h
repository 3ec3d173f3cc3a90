// Names, sizes and exact test values of every data type.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "nccl.h"

namespace bench {

std::size_t typeSize(ncclDataType_t type);
const char* typeName(ncclDataType_t type);
const char* opName(ncclRedOp_t op);
bool isFloating(ncclDataType_t type);
bool isFp8(ncclDataType_t type);

/// Comma separated names, or "all". False if one is unknown.
bool parseTypes(const std::string& names, std::vector<ncclDataType_t>* types);
bool parseOps(const std::string& names, std::vector<ncclRedOp_t>* ops);

/// Writes `value` as element `index` of `array`; exact for the small integers the benchmarks use.
void encode(ncclDataType_t type, double value, void* array, std::size_t index);
double decode(ncclDataType_t type, const void* array, std::size_t index);

/// Relative error that rounding at each of `ranks` steps may leave; 0 for integers.
double tolerance(ncclDataType_t type, int ranks);

}  // namespace bench
