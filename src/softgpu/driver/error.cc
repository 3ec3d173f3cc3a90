// Names and texts of errors.
#include <map>

#include "softgpu/memory/cuda_types.h"

namespace {

struct Described {
  CUresult code;
  const char* name;
  const char* text;
};

constexpr Described kErrors[] = {
#define ERROR_CODE(name, text) {name, #name, text},
#include "softgpu/driver/errors.def"
#undef ERROR_CODE
};

const Described* find(CUresult code) {
  for (const Described& error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

}  // namespace

extern "C" {

CUresult cuGetErrorName(CUresult code, const char** result) {
  const Described* error = find(code);
  if (result != nullptr) *result = error == nullptr ? nullptr : error->name;
  return error == nullptr || result == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult code, const char** result) {
  const Described* error = find(code);
  if (result != nullptr) *result = error == nullptr ? nullptr : error->text;
  return error == nullptr || result == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // extern "C"
