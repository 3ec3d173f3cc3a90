// The instructions that are translated, by opcode.
#pragma once

#include <map>
#include <string_view>

#include "softgpu/ptx/translate/emitter.h"

namespace tutti::softgpu::ptx {

/// Emits one instruction; its predicate is taken care of.
using Handler = void (*)(Emitter& emitter, const Instruction& instruction);
using Handlers = std::map<std::string_view, Handler>;

// Each adds its own.
void addIntegerInstructions(Handlers& handlers);
void addBitInstructions(Handlers& handlers);
void addCarryInstructions(Handlers& handlers);
void addArithmeticInstructions(Handlers& handlers);
void addFloatInstructions(Handlers& handlers);
void addCompareInstructions(Handlers& handlers);
void addConvertInstructions(Handlers& handlers);
void addMoveInstructions(Handlers& handlers);
void addMemoryInstructions(Handlers& handlers);
void addAtomicInstructions(Handlers& handlers);
void addAsynchronousInstructions(Handlers& handlers);
void addControlInstructions(Handlers& handlers);
void addCallInstructions(Handlers& handlers);
void addMeetingInstructions(Handlers& handlers);

/// Whether some instruction has this word behind a dot. Those that only say how hard to try are known as well.
bool isKnownModifier(std::string_view modifier);
/// Null: it is not translated.
Handler handlerOf(std::string_view opcode);

}  // namespace tutti::softgpu::ptx
