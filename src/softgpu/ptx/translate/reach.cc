#include "softgpu/ptx/translate/reach.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <utility>

namespace tutti::softgpu::ptx {
namespace {

template <std::size_t N>
bool oneOf(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, name) != names.end();
}

/// How often each name stands in a function, as operand, base of an address or predicate.
using NameCounts = std::map<std::string, int, std::less<>>;

void count(const Operand& operand, NameCounts& counts) {
  if (const NameOperand* name = operand.name()) ++counts[name->name];
  if (const AddressOperand* address = operand.address()) ++counts[address->base.name];
  if (const GroupOperand* group = operand.group()) {
    for (const Operand& part : group->parts) count(part, counts);
  }
}

NameCounts countNames(const Function& function) {
  NameCounts counts;
  for (const Statement& statement : function.body) {
    const auto* instruction = std::get_if<Instruction>(&statement);
    if (instruction == nullptr) continue;
    ++counts[instruction->predicate];
    for (const Operand& operand : instruction->operands) count(operand, counts);
  }
  return counts;
}

/// Reads what another thread may have written meanwhile. An atomic whose result nobody uses does not.
bool looks(const Instruction& i, const NameCounts& counts) {
  if (i.opcode == "mbarrier") return true;
  if (i.opcode == "atom") {
    const NameOperand* result = i.operands.empty() ? nullptr : i.operands[0].name();
    const auto found = result == nullptr ? counts.end() : counts.find(result->name);
    return !(i.operands[0].isSink() || (found != counts.end() && found->second == 1));
  }
  return i.opcode == "ld" && (i.has("volatile") || i.has("relaxed") || i.has("acquire") || i.has("mmio"));
}

bool looksAnywhere(const Function& function, const NameCounts& counts) {
  return std::ranges::any_of(function.body, [&](const Statement& statement) {
    const auto* instruction = std::get_if<Instruction>(&statement);
    return instruction != nullptr && looks(*instruction, counts);
  });
}

bool meetsOthers(const Instruction& i) {
  static constexpr std::array<std::string_view, 12> kMeetings = {
      "bar", "barrier", "shfl", "vote", "match", "redux", "elect", "activemask", "trap", "nanosleep", "mbarrier", "cp"};
  return accessesLine(i) || (oneOf(i.opcode, kMeetings) && !(i.opcode == "cp" && i.has("async") && !i.has("wait")));
}

bool changesMemory(const Instruction& i) {
  if (i.opcode == "mbarrier") return !i.has("test_wait") && !i.has("try_wait");
  return i.opcode == "st" || i.opcode == "red" || i.opcode == "call" || i.opcode == "atom";
}

std::map<std::string, std::size_t> labelsOf(const Function& function) {
  std::map<std::string, std::size_t> labels;
  for (std::size_t i = 0; i < function.body.size(); ++i) {
    // Labels in scopes of their own may have the same name: the earliest makes the longest loop.
    if (const auto* label = std::get_if<LabelMark>(&function.body[i])) labels.emplace(label->name, i);
  }
  return labels;
}

/// What a function's loops may see of other threads.
struct Sight {
  NameCounts counts;
  bool anywhere = false;   ///< the function looks, in a loop or not
  bool callsLook = false;  ///< what it calls may
};

/// A branch from `end` back to `begin`.
Pause pauseOf(const Function& function, std::size_t begin, std::size_t end, const Sight& sight) {
  bool sees = false;
  bool changes = false;
  for (std::size_t i = begin; i <= end; ++i) {
    const auto* instruction = std::get_if<Instruction>(&function.body[i]);
    if (instruction == nullptr) continue;
    sees = sees || looks(*instruction, sight.counts) || (sight.callsLook && instruction->opcode == "call");
    changes = changes || changesMemory(*instruction);
  }
  if (sees) return changes ? Pause::Seldom : Pause::Always;
  // A compiler may have put the load behind the branch.
  return sight.anywhere ? Pause::Seldom : Pause::Never;
}

const Instruction* instructionAt(const Statement& statement) {
  return std::get_if<Instruction>(&statement);
}

using Tables = std::map<std::string, const BranchTable*>;

Tables tablesOf(const Function& function) {
  Tables tables;
  for (const Statement& statement : function.body) {
    if (const auto* table = std::get_if<BranchTable>(&statement)) tables[table->name] = table;
  }
  return tables;
}

/// The labels that a branch may go to; none if it is no branch.
std::vector<std::string> targetsOf(const Instruction& branch, const Tables& tables) {
  if (branch.opcode == "bra" && !branch.operands.empty()) {
    const NameOperand* label = branch.operands[0].name();
    return label == nullptr ? std::vector<std::string>() : std::vector<std::string>{label->name};
  }
  if (branch.opcode != "brx" || branch.operands.size() < 2) return {};
  const NameOperand* name = branch.operands[1].name();
  const auto table = name == nullptr ? tables.end() : tables.find(name->name);
  return table == tables.end() ? std::vector<std::string>() : table->second->targets;
}

class Reacher {
 public:
  Reacher(const Program& program, const VariableLayout& layout) : program_(program), layout_(layout) {
    for (const Variable& variable : program.variables) {
      if (variable.space == Space::Shared) moduleShared_[variable.name] = &variable;
    }
  }

  KernelReach from(const Function& kernel) {
    add(kernel);
    for (std::size_t next = 0; next < reach_.functions.size(); ++next) visit(*reach_.functions[next]);
    placeShared();
    return std::move(reach_);
  }

 private:
  void add(const Function& function) {
    if (seen_.insert(&function).second) reach_.functions.push_back(&function);
  }

  void visit(const Function& function) {
    for (const Statement& statement : function.body) {
      if (const auto* variable = std::get_if<Variable>(&statement)) visitVariable(*variable);
      if (const Instruction* instruction = instructionAt(statement)) visitInstruction(*instruction);
    }
  }

  void visitVariable(const Variable& variable) {
    if (variable.space == Space::Shared) shared_.push_back(&variable);
    if (variable.space == Space::Local) {
      reach_.localBytes += static_cast<std::uint32_t>(alignUp(variable.bytes(), variable.align));
    }
  }

  void visitInstruction(const Instruction& instruction) {
    reach_.waits = reach_.waits || meetsOthers(instruction);
    if (instruction.opcode == "call") return visitCall(instruction);
    for (const Operand& operand : instruction.operands) visitOperand(operand);
  }

  void visitOperand(const Operand& operand) {
    if (const NameOperand* name = operand.name()) visitName(name->name);
    if (const AddressOperand* address = operand.address()) visitName(address->base.name);
    if (const GroupOperand* group = operand.group()) {
      for (const Operand& part : group->parts) visitOperand(part);
    }
  }

  void visitName(const std::string& name) {
    const auto found = moduleShared_.find(name);
    if (found != moduleShared_.end() && std::ranges::find(shared_, found->second) == shared_.end()) {
      shared_.push_back(found->second);
    }
  }

  void visitCall(const Instruction& call) {
    const NameOperand* target = call.operands[1].name();
    const std::string name = target == nullptr ? "" : target->name;
    if (name.starts_with('%')) {
      reach_.waits = true;
      for (const std::string& other : layout_.addressed) add(*program_.functions.at(other));
      return;
    }
    if (isBuiltIn(name)) {
      reach_.waits = reach_.waits || name == "__assertfail";
      return;
    }
    const auto found = program_.functions.find(name);
    if (found == program_.functions.end() || !found->second->defined) {
      throw TextError{"function " + name + " is called and defined nowhere in this image", call.line};
    }
    add(*found->second);
  }

  void placeShared() {
    std::uint64_t offset = 0;
    std::uint64_t dynamicAlign = 16;
    for (const Variable* variable : shared_) {
      if (variable->external) {
        dynamicAlign = std::max<std::uint64_t>(dynamicAlign, variable->align);
        continue;
      }
      offset = alignUp(offset, variable->align);
      reach_.shared[variable] = static_cast<std::uint32_t>(offset);
      offset += variable->bytes();
    }
    offset = alignUp(offset, dynamicAlign);
    for (const Variable* variable : shared_) {
      if (variable->external) reach_.shared[variable] = static_cast<std::uint32_t>(offset);
    }
    reach_.sharedBytes = static_cast<std::uint32_t>(offset);
  }

  const Program& program_;
  const VariableLayout& layout_;
  std::map<std::string, const Variable*> moduleShared_;
  std::vector<const Variable*> shared_;
  std::set<const Function*> seen_;
  KernelReach reach_;
};

}  // namespace

bool accessesLine(const Instruction& i) {
  if (i.opcode != "ld" && i.opcode != "st") return false;
  const bool strong = i.has("volatile") || i.has("relaxed") || i.has("acquire") || i.has("release") || i.has("mmio");
  const unsigned elements = i.has("v8") ? 8 : i.has("v4") ? 4 : i.has("v2") ? 2 : 1;
  return strong && elements * i.type(i.types() - 1).bits > 64;
}

bool isBuiltIn(std::string_view function) {
  static constexpr std::array<std::string_view, 4> kBuiltIn = {"vprintf", "malloc", "free", "__assertfail"};
  return oneOf(function, kBuiltIn);
}

std::map<std::size_t, Pause> pausesOf(const Function& function, bool callsLook) {
  const auto labels = labelsOf(function);
  const auto tables = tablesOf(function);
  Sight sight{countNames(function), false, callsLook};
  sight.anywhere = looksAnywhere(function, sight.counts);
  std::map<std::size_t, Pause> pauses;
  for (std::size_t i = 0; i < function.body.size(); ++i) {
    const Instruction* branch = instructionAt(function.body[i]);
    if (branch == nullptr) continue;
    std::size_t earliest = i;
    for (const std::string& target : targetsOf(*branch, tables)) {
      if (const auto label = labels.find(target); label != labels.end()) earliest = std::min(earliest, label->second);
    }
    if (earliest < i) pauses[i] = pauseOf(function, earliest, i, sight);
  }
  return pauses;
}

KernelReach reachOf(const Program& program, const VariableLayout& layout, const Function& kernel) {
  return Reacher(program, layout).from(kernel);
}

void addLoops(KernelReach& reach) {
  for (const Function* function : reach.functions) {
    if (function != reach.functions.front() && looksAnywhere(*function, countNames(*function))) reach.calledLook = true;
  }
  for (const Function* function : reach.functions) {
    for (const auto& [at, pause] : pausesOf(*function, reach.calledLook)) {
      reach.waits = reach.waits || pause != Pause::Never;
    }
  }
}

}  // namespace tutti::softgpu::ptx
