#include "softgpu/ptx/translate/layout.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace tutti::softgpu::ptx {
namespace {

/// Names that stand as operands, in all functions that have a body.
void collectNames(const Operand& operand, std::set<std::string>& names) {
  if (const NameOperand* name = operand.name()) names.insert(name->name);
  if (const GroupOperand* group = operand.group()) {
    for (const Operand& part : group->parts) collectNames(part, names);
  }
}

/// Functions whose address is taken: by an initial value, or by an instruction that is not a call of it.
std::vector<std::string> addressedFunctions(const Program& program) {
  std::set<std::string> names;
  for (const Variable& variable : program.variables) {
    for (const Initial& part : variable.initial) names.insert(part.symbol);
  }
  for (const auto& [name, function] : program.functions) {
    for (const Statement& statement : function->body) {
      const auto* instruction = std::get_if<Instruction>(&statement);
      if (instruction == nullptr || instruction->opcode != "mov") continue;
      for (const Operand& operand : instruction->operands) collectNames(operand, names);
    }
  }
  std::vector<std::string> addressed;
  for (const auto& [name, function] : program.functions) {
    if (!function->entry && function->defined && names.contains(name)) addressed.push_back(name);
  }
  return addressed;
}

void place(const Variable& variable, VariableLayout& layout) {
  const std::uint64_t offset = alignUp(layout.initial.size(), variable.align);
  layout.initial.resize(offset + variable.bytes());
  layout.offsets[variable.name] = offset;
  layout.places.push_back({variable.name.c_str(), offset, variable.bytes(), variable.space == Space::Constant});
}

void fill(const Variable& variable, VariableLayout& layout) {
  const std::uint64_t base = layout.offsets.at(variable.name);
  for (const Initial& part : variable.initial) {
    std::uint64_t value = part.value;
    if (!part.symbol.empty()) {
      if (const auto number = layout.functionNumber(part.symbol)) {
        value += *number;
      } else if (const auto found = layout.offsets.find(part.symbol); found != layout.offsets.end()) {
        layout.relocations.push_back({base + part.offset, found->second + value});
        continue;
      } else {
        throw TextError{"the initial value of " + variable.name + " needs " + part.symbol + ", which is not there",
                        variable.line};
      }
    }
    std::memcpy(layout.initial.data() + base + part.offset, &value, part.bytes);
  }
}

}  // namespace

std::optional<std::uint64_t> VariableLayout::functionNumber(std::string_view name) const {
  const auto found = std::ranges::lower_bound(addressed, name);
  if (found == addressed.end() || *found != name) return std::nullopt;
  return kFirstFunctionNumber + kFunctionNumberStep * static_cast<std::uint64_t>(found - addressed.begin());
}

VariableLayout layOut(const Program& program) {
  VariableLayout layout;
  layout.addressed = addressedFunctions(program);
  const auto lies = [](const Variable& variable) {
    return variable.space == Space::Global || variable.space == Space::Constant;
  };
  for (const Variable& variable : program.variables) {
    if (lies(variable) && !variable.external) place(variable, layout);
  }
  for (const Variable& variable : program.variables) {
    if (!lies(variable)) continue;
    if (!layout.offsets.contains(variable.name)) {
      throw TextError{"variable " + variable.name + " is declared .extern and defined nowhere in this image",
                      variable.line};
    }
    if (!variable.external) fill(variable, layout);
  }
  return layout;
}

ParameterLayout layOut(const std::vector<Variable>& parameters) {
  ParameterLayout layout;
  std::uint64_t offset = 0;
  for (const Variable& parameter : parameters) {
    offset = alignUp(offset, parameter.align);
    layout.params.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(parameter.bytes())});
    offset += parameter.bytes();
  }
  layout.bytes = static_cast<std::uint32_t>(offset);
  return layout;
}

}  // namespace tutti::softgpu::ptx
