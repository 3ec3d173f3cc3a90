// The process's view of the simulated machine: devices, contexts, memory, and every handle given out.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "softgpu/device/context.h"
#include "softgpu/device/device.h"
#include "softgpu/device/event.h"
#include "softgpu/device/graph.h"
#include "softgpu/device/module.h"
#include "softgpu/device/registry.h"
#include "softgpu/device/settings.h"
#include "softgpu/device/started_engines.h"
#include "softgpu/device/stream.h"
#include "softgpu/device/topology.h"
#include "softgpu/exec/callback_thread.h"
#include "softgpu/exec/host_calls.h"
#include "softgpu/exec/idle_hooks.h"
#include "softgpu/memory/cuda_types.h"
#include "softgpu/memory/imports.h"
#include "softgpu/memory/memory.h"

namespace tutti::softgpu {

/// Exists from cuInit to the end of the process; a forked child forgets it and may initialise anew.
struct Machine {
  Settings settings;
  MachineFile file;  ///< SOFTGPU_TOPO
  std::vector<std::unique_ptr<Device>> devices;
  MemoryTable memory;
  Imports imports;
  /// Guards streams, events, graphs, captures and contexts. Held only for moments, never while work runs.
  std::mutex lock;
  std::vector<std::unique_ptr<Context>> contexts;  ///< never freed: stale handles stay recognisable
  Registry<Stream> streams;
  Registry<Event> events;
  Registry<Graph> graphs;
  Registry<GraphExec> execs;
  Registry<UserObject> userObjects;
  CallbackThread destructors;  ///< of user objects
  IdleHooks idleHooks;
  std::unique_ptr<StartedEngines> engines;
  Registry<Module> modules;
  Registry<Physical> physicals;
  Registry<Pool> pools;
  HostCalls hostCalls;
};

/// Creates the machine once. CUDA_ERROR_NO_DEVICE when the settings leave none.
CUresult initialiseMachine();
/// True between initialiseMachine and the end of the process.
bool machineExists();
/// Only where machineExists().
Machine& machine();
/// True once the process is on its way out: every call then answers CUDA_ERROR_DEINITIALIZED.
bool machineStopping();
/// Changes in a forked child, so that what threads remember of the parent's machine can be told apart.
std::uint64_t machineGeneration();

}  // namespace tutti::softgpu
