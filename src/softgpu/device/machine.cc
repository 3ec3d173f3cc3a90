#include "softgpu/device/machine.h"

#include <pthread.h>

#include "softgpu/device/engine.h"

namespace tutti::softgpu {
namespace {

// Never deleted: engines and other threads may use it until the very end of the process.
std::atomic<Machine*> theMachine{nullptr};
std::atomic<bool> stopping{false};
std::atomic<std::uint64_t> generation{1};
std::mutex* creation = new std::mutex;

/// Threads do not survive a fork and locks may be held by them: the child starts from nothing.
void forgetInChild() {
  theMachine.store(nullptr);
  generation.fetch_add(1);
  creation = new std::mutex;
}

std::unique_ptr<Machine> build() {
  auto made = std::make_unique<Machine>();
  made->settings = readSettings();
  const std::vector<DeviceFacts> all = describeDevices(made->settings, made->file);
  std::vector<DeviceFacts> shown;
  if (made->settings.visible.has_value()) {
    for (const int ordinal : *made->settings.visible) {
      if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= all.size()) break;
      shown.push_back(all[static_cast<std::size_t>(ordinal)]);
    }
  } else {
    shown = all;
  }
  const std::string boot = readBootId();
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const CUuuid uuid = uuidOf(shown[i], made->settings.host, boot);
    made->devices.push_back(std::make_unique<Device>(static_cast<int>(i), shown[i], uuid, made->settings));
  }
  made->engines = std::make_unique<StartedEngines>(made->devices.size());
  return made;
}

__attribute__((destructor)) void stopAtExit() {
  stopping.store(true);
  if (theMachine.load() != nullptr) stopEngines();
}

}  // namespace

CUresult initialiseMachine() {
  if (stopping.load()) return CUDA_ERROR_DEINITIALIZED;
  std::lock_guard<std::mutex> guard(*creation);
  if (theMachine.load() == nullptr) {
    static const int registered = ::pthread_atfork(nullptr, nullptr, forgetInChild);
    if (registered != 0) return CUDA_ERROR_OUT_OF_MEMORY;
    theMachine.store(build().release());
  }
  return machine().devices.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

bool machineExists() {
  return theMachine.load(std::memory_order_acquire) != nullptr;
}
Machine& machine() {
  return *theMachine.load(std::memory_order_acquire);
}
bool machineStopping() {
  return stopping.load(std::memory_order_acquire);
}
std::uint64_t machineGeneration() {
  return generation.load(std::memory_order_relaxed);
}

}  // namespace tutti::softgpu
