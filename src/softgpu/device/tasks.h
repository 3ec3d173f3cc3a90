// What turns operations into work for a device's engine.
#pragma once

#include <memory>

#include "softgpu/exec/operation.h"
#include "softgpu/exec/task.h"

namespace tutti::softgpu {

class Context;

/// Work for the engine of the context's device. The machine's lock is held: events are recorded and looked up here.
std::unique_ptr<Task> makeTask(const Operation& operation, Context& context);

}  // namespace tutti::softgpu
