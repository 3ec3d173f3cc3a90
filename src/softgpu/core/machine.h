// The process's view of the simulated machine: devices, contexts, memory, and every handle given out.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "softgpu/core/callback_thread.h"
#include "softgpu/core/context.h"
#include "softgpu/core/cuda_types.h"
#include "softgpu/core/device.h"
#include "softgpu/core/event.h"
#include "softgpu/core/graph.h"
#include "softgpu/core/idle_hooks.h"
#include "softgpu/core/imports.h"
#include "softgpu/core/memory.h"
#include "softgpu/core/module.h"
#include "softgpu/core/registry.h"
#include "softgpu/core/settings.h"
#include "softgpu/core/stream.h"
#include "softgpu/core/topology.h"

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
  std::atomic<int> engines{0};  ///< started
  Registry<Module> modules;
  Registry<Physical> physicals;
  Registry<Pool> pools;
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
