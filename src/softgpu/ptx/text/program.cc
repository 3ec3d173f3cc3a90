#include "softgpu/ptx/text/program.h"

#include <algorithm>

namespace tutti::softgpu::ptx {

bool Instruction::has(std::string_view modifier) const {
  return std::ranges::find(modifiers, modifier) != modifiers.end();
}

Type Instruction::type(std::size_t nth) const {
  for (const std::string& modifier : modifiers) {
    const auto type = typeOf(modifier);
    if (type.has_value() && nth-- == 0) return *type;
  }
  return {};
}

std::size_t Instruction::types() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(modifiers, [](const std::string& modifier) { return typeOf(modifier).has_value(); }));
}

std::string Instruction::text() const {
  std::string all = opcode;
  for (const std::string& modifier : modifiers) all += "." + modifier;
  return all;
}

}  // namespace tutti::softgpu::ptx
