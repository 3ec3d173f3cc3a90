// A simulated GPU: what it says about itself, its memory, its engine.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "softgpu/device/device_facts.h"
#include "softgpu/device/settings.h"
#include "softgpu/exec/callback_thread.h"
#include "softgpu/memory/cuda_types.h"
#include "softgpu/memory/memory.h"
#include "softgpu/memory/window.h"

namespace tutti::softgpu {

class Context;
class Engine;

class Device {
 public:
  Device(int index, const DeviceFacts& facts, const CUuuid& uuid, const Settings& settings);
  ~Device();
  int index() const { return index_; }
  const DeviceFacts& facts() const { return facts_; }
  const CUuuid& uuid() const { return uuid_; }
  /// Any attribute of the enum; false for values outside of it.
  bool attribute(CUdevice_attribute attribute, int* value) const;

  /// The primary context, created on first use and the same for ever.
  Context& primary();
  /// Started on first use.
  Engine& engine();
  CallbackThread& callbacks() { return callbacks_; }
  Engine* startedEngine() const { return engine_.load(std::memory_order_acquire); }

  NicReach nicReach() const { return nicReach_; }
  std::uint64_t memoryBytes() const { return memoryBytes_; }
  std::uint64_t usedBytes() const { return used_.load(); }
  /// Device memory for `context`, entered into the machine's table.
  CUresult allocate(Context& context, std::size_t size, MemoryKind kind, std::shared_ptr<Allocation>* result);
  /// Gives back what allocate made, once it is out of the table.
  void release(const Allocation& allocation);
  /// Where allocate takes memory from, as long as it can.
  Window& window() { return window_; }
  /// Counts memory made elsewhere (cuMemCreate); false when it does not fit.
  bool charge(std::size_t bytes);
  /// Which cuMemAllocAsync takes from; null: the default one.
  std::shared_ptr<Pool> currentPool();
  void setCurrentPool(std::shared_ptr<Pool> pool);
  /// If it is the current one, there is none from now on.
  void forgetPool(const Pool& pool);
  void discharge(std::size_t bytes) { used_.fetch_sub(bytes); }

 private:
  int index_;
  DeviceFacts facts_;
  CUuuid uuid_;
  NicReach nicReach_;
  std::uint64_t memoryBytes_;
  std::atomic<std::uint64_t> used_{0};
  Window window_;
  std::mutex poolLock_;
  std::shared_ptr<Pool> currentPool_;
  std::mutex startLock_;
  std::mutex primaryLock_;
  Context* primary_ = nullptr;
  std::atomic<Engine*> engine_{nullptr};
  CallbackThread callbacks_;
};

}  // namespace tutti::softgpu
