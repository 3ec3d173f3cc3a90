#include "softgpu/driver/entry.h"

#include <cstring>
#include <set>

#include "softgpu/say.h"

namespace tutti::softgpu {
namespace {

std::mutex& bookLock() {
  static auto* lock = new std::mutex;
  return *lock;
}

/// Counts calls of the names that are to fail.
bool failureDue(const char* name) {
  auto& failures = machine().settings.failures;
  if (failures.empty()) return false;
  std::lock_guard<std::mutex> guard(bookLock());
  const auto it = failures.find(name);
  return it != failures.end() && it->second > 0 && --it->second == 0;
}

}  // namespace

CUresult checkCall(const char* name) {
  if (machineStopping()) return CUDA_ERROR_DEINITIALIZED;
  if (!machineExists()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!failureDue(name)) return CUDA_SUCCESS;
  const bool memory = std::strstr(name, "Alloc") != nullptr || std::strstr(name, "MemCreate") != nullptr;
  say("%s fails because SOFTGPU_FAIL asks for it", name);
  return memory ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN;
}

CUresult unsupported(const char* name) {
  static auto* told = new std::set<std::string>;
  std::lock_guard<std::mutex> guard(bookLock());
  if (told->insert(name).second) say("%s is not supported", name);
  return CUDA_ERROR_NOT_SUPPORTED;
}

std::shared_ptr<Stream> streamOf(Context& context, CUstream handle) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return context.legacy();
  if (handle == CU_STREAM_PER_THREAD) return context.perThread();
  return machine().streams.find(handle);
}

Context* contextOf(CUcontext handle) {
  std::lock_guard<std::mutex> guard(machine().lock);
  for (const auto& context : machine().contexts) {
    if (context->handle() == handle && (context->primary() || context->retains > 0)) return context.get();
  }
  return nullptr;
}

Device* deviceOf(CUdevice ordinal) {
  auto& devices = machine().devices;
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= devices.size()) return nullptr;
  return devices[static_cast<std::size_t>(ordinal)].get();
}

}  // namespace tutti::softgpu
