// Instructions that do the same to each element of packed operands.
#pragma once

#include <span>
#include <vector>

#include "softgpu/ptx/translate/emitter.h"

namespace tutti::softgpu::ptx {

/// The type of one element.
inline Type elementOf(Type type) {
  return {type.kind, static_cast<std::uint16_t>(type.bits / type.packed), 1};
}

/// The elements of an operand as numbers, the lowest first.
inline std::vector<Value*> elementsOf(Emitter& e, const Operand& operand, Type type) {
  const Type element = elementOf(type);
  if (type.packed == 1) return {e.number(operand, type)};
  Value* all = e.bits(operand, type.bits);
  std::vector<Value*> elements;
  for (unsigned i = 0; i < type.packed; ++i) {
    Value* part = e.ir().CreateTrunc(e.ir().CreateLShr(all, i * element.bits), e.ir().getIntNTy(element.bits));
    elements.push_back(e.numberOf(part, element));
  }
  return elements;
}

/// The bits of a register that holds these numbers.
inline Value* packed(Emitter& e, const std::vector<Value*>& elements, Type type) {
  const Type element = elementOf(type);
  Value* all = nullptr;
  for (unsigned i = 0; i < elements.size(); ++i) {
    Value* part = e.ir().CreateZExt(e.bitsOf(elements[i], element), e.ir().getIntNTy(type.bits));
    part = e.ir().CreateShl(part, i * element.bits);
    all = all == nullptr ? part : e.ir().CreateOr(all, part);
  }
  return all;
}

/// operands[0] becomes make(numbers of the other operands, type of one element), element by element.
template <class Make>
void elementwise(Emitter& e, const Instruction& i, Type type, std::size_t sources, const Make& make) {
  std::vector<std::vector<Value*>> operands;
  for (std::size_t s = 0; s < sources; ++s) operands.push_back(elementsOf(e, i.operands.at(s + 1), type));
  std::vector<Value*> results;
  for (std::size_t n = 0; n < type.packed; ++n) {
    std::vector<Value*> given;
    for (const auto& operand : operands) given.push_back(operand[n]);
    results.push_back(make(given, elementOf(type)));
  }
  e.write(i.operands[0], packed(e, results, type), type.packed == 1 && type.isSigned());
}

}  // namespace tutti::softgpu::ptx
