// Special registers: where a thread is, and clocks.
#pragma once

#include "softgpu/ptx/translate/emitter.h"

namespace tutti::softgpu::ptx {

/// The value of `%tid.x` and the like; null: it is not known.
Value* specialRegister(Emitter& emitter, const NameOperand& name);

}  // namespace tutti::softgpu::ptx
