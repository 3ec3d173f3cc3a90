#include "softgpu/driver/entry.h"

#include <atomic>
#include <cstdint>
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

/// As CUDA does. Where a parent had begun, that surprises; once a process.
CUresult notInitialised(const char* name) {
  static std::atomic<std::uint64_t> told{0};
  const std::uint64_t generation = machineGeneration();
  if (generation > 1 && told.exchange(generation) != generation) {
    say("%s fails in this child made by fork(): nothing of its parent's CUDA is left here, and none of its calls "
        "succeeds before cuInit. Start the child with exec, or fork before the first call of CUDA",
        name);
  }
  return CUDA_ERROR_NOT_INITIALIZED;
}

}  // namespace

CUresult checkCall(const char* name) {
  if (machineStopping()) return CUDA_ERROR_DEINITIALIZED;
  if (!machineExists()) return notInitialised(name);
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
