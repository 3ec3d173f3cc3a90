// Devices in use by this process: one context reference and one set of loaded kernels per device for all communicators.
#pragma once

#include <sched.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/status.h"
#include "gpu/driver.h"
#include "gpu/kernel_source.h"

namespace tutti::gpu {
class Device;
class KernelSet;
struct Driver;
}  // namespace tutti::gpu
namespace tutti::proxy {
class ProgressEngine;
class ProgressGroup;
struct GroupHooks;
}  // namespace tutti::proxy

namespace tutti::comm {

class ImplicitOrder;

/// On the software GPU, lets threads that run kernels drive the engine while these wait; elsewhere does nothing.
class EngineHook {
 public:
  EngineHook() = default;
  /// The engine must outlive the hook. Where there is no place for a further hook its thread drives alone.
  void install(const gpu::Driver& driver, proxy::ProgressEngine& engine);
  ~EngineHook();
  EngineHook(const EngineHook&) = delete;
  EngineHook& operator=(const EngineHook&) = delete;

 private:
  int (*remove_)(std::uint64_t ticket) = nullptr;  ///< null: not installed
  std::uint64_t ticket_ = 0;
};

/// A device, its kernels, and the thread that drives what the host has to do for them. Thread-safe like its members.
struct PooledDevice {
  PooledDevice();
  ~PooledDevice();
  const gpu::Driver& driver() const;
  /// Where the engine's thread runs; the first to say so decides.
  void runEngineOn(const cpu_set_t& processors) const;
  /// Tasks that the engine drives. Errors: the engine's.
  Result<std::unique_ptr<proxy::ProgressGroup>> group(proxy::GroupHooks hooks) const;
  /// The kernel of that name, loaded at first use. Errors: the driver's.
  Result<CUfunction> kernel(const std::string& name) const;

  /// Of all launches of the device that want it; made by the first who asks. Errors: the driver's.
  Result<ImplicitOrder*> launchOrder();

  std::unique_ptr<gpu::Device> device;
  std::unique_ptr<gpu::KernelSet> kernels;
  std::shared_ptr<proxy::ProgressEngine> engine;  ///< without a thread until there is something to drive
  EngineHook hook;                                ///< goes before the engine

 private:
  std::mutex orderMutex_;
  std::unique_ptr<ImplicitOrder> order_;
};

/// The device of that ordinal, opened at first use and closed when its last user lets go. Any thread.
Result<std::shared_ptr<PooledDevice>> acquireDevice(const gpu::Driver& driver, int ordinal,
                                                    const gpu::KernelSource& kernels);

}  // namespace tutti::comm
