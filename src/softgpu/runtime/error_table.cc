#include "softgpu/runtime/error_table.h"

#include <algorithm>
#include <iterator>

#include "softgpu/runtime/api.h"

namespace tutti::softgpu {
namespace {

constexpr ErrorText kErrors[] = {
#define ERROR(name, text) {name, #name, text},
#include "softgpu/runtime/errors.def"
#undef ERROR
};

}  // namespace

const ErrorText* findError(cudaError_t error) {
  // The table is in the order of the numbers.
  const auto* row = std::lower_bound(std::begin(kErrors), std::end(kErrors), error,
                                     [](const ErrorText& a, cudaError_t code) { return a.code < code; });
  return row != std::end(kErrors) && row->code == error ? row : nullptr;
}

}  // namespace tutti::softgpu

using tutti::softgpu::findError;

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  const auto* row = findError(error);
  return row != nullptr ? row->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const auto* row = findError(error);
  return row != nullptr ? row->text : "unrecognized error code";
}

cudaError_t cudaGetLastError(void) {
  return tutti::softgpu::lastError(true);
}

cudaError_t cudaPeekAtLastError(void) {
  return tutti::softgpu::lastError(false);
}

}  // extern "C"
