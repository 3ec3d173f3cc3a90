#include "softgpu/driver/code/jit_log.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace tutti::softgpu {
namespace {

/// Options carry numbers where pointers are meant to be, and results come back there.
void write(unsigned count, const CUjit_option* options, void** values, CUjit_option bufferOption,
           CUjit_option sizeOption, const std::string& text) {
  char* buffer = nullptr;
  void** size = nullptr;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == bufferOption) buffer = static_cast<char*>(values[i]);
    if (options[i] == sizeOption) size = &values[i];
  }
  if (size == nullptr) return;
  const auto room = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(*size));
  std::size_t written = 0;
  if (buffer != nullptr && room != 0) {
    written = std::min<std::size_t>(text.size(), room - 1);
    std::memcpy(buffer, text.data(), written);
    buffer[written] = '\0';
  }
  *size = reinterpret_cast<void*>(written);
}

}  // namespace

void writeJitLogs(unsigned count, const CUjit_option* options, void** values, const std::string& error) {
  if (options == nullptr || values == nullptr) return;
  write(count, options, values, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, error);
  write(count, options, values, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, {});
}

}  // namespace tutti::softgpu
