// What PTX text says, as plain values: variables, functions and their instructions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "softgpu/ptx/text/types.h"

namespace tutti::softgpu::ptx {

enum class Space : std::uint8_t { Generic, Register, Global, Constant, Shared, Local, Param };

/// A part of an initial value: bytes, or the address of a variable or function.
struct Initial {
  std::uint64_t offset = 0;  ///< in the variable
  std::uint64_t value = 0;   ///< added to the symbol's address
  std::uint32_t bytes = 0;
  std::string symbol;  ///< empty: `value` itself
};

/// A declared variable, parameter or register.
struct Variable {
  std::string name;
  Space space = Space::Global;
  Type type;
  std::uint32_t vector = 1;  ///< elements of a register or variable declared .v2 or .v4
  std::uint32_t align = 1;
  std::uint64_t count = 1;  ///< of an array; 0 for one without a size
  bool external = false;
  std::vector<Initial> initial;
  int line = 0;

  std::uint64_t bytes() const { return count * vector * (type.bits == 1 ? 1 : type.bytes()); }
};

struct Operand;

/// `%r1`, `%tid.x`, `name`; `part` is what stands behind a dot.
struct NameOperand {
  std::string name;
  std::string part;
  std::int64_t offset = 0;  ///< `name+4`
};
/// A number. What a floating-point instruction makes of `1` is 1.0, of `0f3f800000` the bits.
struct NumberOperand {
  std::uint64_t bits = 0;
  std::uint16_t floatBits = 0;  ///< 32, 64: `bits` are those of such a number; 0: an integer
};
/// `[base+offset]`; no base: an absolute address.
struct AddressOperand {
  NameOperand base;
  std::int64_t offset = 0;
};
/// `{a, b}`, or `p|q` (two results).
struct GroupOperand {
  std::vector<Operand> parts;
};
struct SinkOperand {};  ///< `_`

struct Operand {
  std::variant<SinkOperand, NameOperand, NumberOperand, AddressOperand, GroupOperand> value;
  bool negated = false;  ///< `!p` or `-a`

  const NameOperand* name() const { return std::get_if<NameOperand>(&value); }
  const NumberOperand* number() const { return std::get_if<NumberOperand>(&value); }
  const AddressOperand* address() const { return std::get_if<AddressOperand>(&value); }
  const GroupOperand* group() const { return std::get_if<GroupOperand>(&value); }
  bool isSink() const { return std::holds_alternative<SinkOperand>(value); }
};

/// One instruction, `@p add.sat.s32 %r1, %r2, %r3;`. A call has its results as a group, its target, its arguments as a
/// group and, where it is indirect, the prototype or table, each of them an operand.
struct Instruction {
  std::string opcode;                  ///< up to the first dot
  std::vector<std::string> modifiers;  ///< what stands between dots
  std::vector<Operand> operands;
  std::string predicate;  ///< empty: always
  bool predicateNegated = false;
  int line = 0;

  bool has(std::string_view modifier) const;
  /// The nth of the modifiers that are types; 32 bits where there are fewer.
  Type type(std::size_t nth = 0) const;
  std::size_t types() const;
  /// As it stood in the text, for messages.
  std::string text() const;
};

struct LabelMark {
  std::string name;
};
/// `{` and `}`, which open and close a scope of names.
struct ScopeMark {
  bool opens = true;
};
/// `name: .branchtargets a, b;`, and `.calltargets` alike, of functions
struct BranchTable {
  std::string name;
  std::vector<std::string> targets;
};
struct Signature {
  std::vector<Variable> results;
  std::vector<Variable> parameters;
};
/// `name: .callprototype (…) _ (…);`
struct Prototype {
  std::string name;
  Signature signature;
};
using Statement = std::variant<Instruction, LabelMark, ScopeMark, Variable, BranchTable, Prototype>;

struct Function {
  std::string name;
  bool entry = false;
  bool defined = false;  ///< has a body
  Signature signature;
  std::vector<Statement> body;
  std::uint32_t maxThreads = 0;  ///< .maxntid or .reqntid; 0: not said
  int line = 0;
};

struct Program {
  std::vector<Variable> variables;  ///< of the module, in order
  std::map<std::string, std::shared_ptr<Function>> functions;
  std::vector<std::string> entries;  ///< names, in order
};

/// What could not be read or translated, and where.
struct TextError {
  std::string what;
  int line = 0;
};

}  // namespace tutti::softgpu::ptx
