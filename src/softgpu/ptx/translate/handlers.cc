#include "softgpu/ptx/translate/handlers.h"

namespace tutti::softgpu::ptx {

Handler handlerOf(std::string_view opcode) {
  static const Handlers kHandlers = [] {
    Handlers all;
    addIntegerInstructions(all);
    addBitInstructions(all);
    addCarryInstructions(all);
    addArithmeticInstructions(all);
    addFloatInstructions(all);
    addCompareInstructions(all);
    addConvertInstructions(all);
    addMoveInstructions(all);
    addMemoryInstructions(all);
    addAtomicInstructions(all);
    addControlInstructions(all);
    addCallInstructions(all);
    addMeetingInstructions(all);
    return all;
  }();
  const auto found = kHandlers.find(opcode);
  return found == kHandlers.end() ? nullptr : found->second;
}

}  // namespace tutti::softgpu::ptx
