// add.cc, sub.cc and mad.cc.
#pragma once

#include "softgpu/ptx/translate/emitter.h"

namespace tutti::softgpu::ptx {

/// The forms of add, sub and mad that write the carry.
void carryOut(Emitter& e, const Instruction& i);

}  // namespace tutti::softgpu::ptx
