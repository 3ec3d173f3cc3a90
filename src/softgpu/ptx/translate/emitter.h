// One function on its way from PTX to LLVM's intermediate code.
//
// A register is a word in the function's frame, as wide as it is declared (LLVM makes values of these words); what an
// instruction makes of it, integer or number, is decided where it is read. Halves are computed as float and rounded
// where they are written.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <llvm/IR/IRBuilder.h>

#include "device/simt/simt_host_abi.h"
#include "softgpu/ptx/text/program.h"
#include "softgpu/ptx/translate/unit.h"

namespace tutti::softgpu::ptx {

using llvm::Value;

/// What the code of a function is given. Kernels get the thread's place as values, which a loop over the threads of a
/// block can count; other functions read it from `self`.
struct Frame {
  Value* self = nullptr;
  Value* parameters = nullptr;
  Value* results = nullptr;                        ///< of a kernel: null
  Value* thread[3] = {nullptr, nullptr, nullptr};  ///< tid.x, tid.y, tid.z
  Value* block[3] = {nullptr, nullptr, nullptr};   ///< ctaid.x, ctaid.y, ctaid.z
};

class Emitter {
 public:
  Emitter(Unit& unit, const Function& function, llvm::Function* code, const Frame& frame);
  /// Translates the body. Throws TextError.
  void emit();

  // For instructions.
  llvm::IRBuilder<>& ir() { return ir_; }
  Unit& unit() { return unit_; }
  const Frame& frame() const { return frame_; }

  /// The lowest `bits` of an operand: a wider register is cut, a narrower one filled with zeros.
  Value* bits(const Operand& operand, unsigned bits);
  /// An operand as a number of this type; halves as float. Of packed types see parts().
  Value* number(const Operand& operand, Type type);
  Value* predicate(const Operand& operand);
  /// What a register of this type holds as a number, and the other way round.
  Value* numberOf(Value* bits, Type type);
  Value* bitsOf(Value* number, Type type);
  /// Writes an integer to a register; a wider register is filled with its sign if `isSigned`, else with zeros.
  void write(const Operand& destination, Value* bits, bool isSigned = false);
  void writeNumber(const Operand& destination, Value* number, Type type);
  /// The registers of a group `{a, b}`, or of `p|q`; one operand stands for itself.
  static std::vector<Operand> partsOf(const Operand& operand);

  /// The address that an instruction reaches in `space`.
  Value* address(const Operand& operand, Space space);
  /// Adds the beginning of a space to an address in it, or takes it away.
  Value* genericOf(Value* address, Space space);
  Value* spaceOf(Value* address, Space space);
  /// The declared thing behind a name: a parameter, a local or shared variable, a register; null: none.
  const Variable* variable(std::string_view name) const;

  Value* integer(unsigned bits, std::uint64_t value) { return ir_.getIntN(bits, value); }
  llvm::Type* typeOf(Type type);
  /// A load whose word does not change while the thread runs.
  Value* constantLoad(Value* base, std::size_t offset, llvm::Type* type);
  /// A member of HostThread.
  Value* selfWord(std::size_t offset, llvm::Type* type);
  Value* selfPointer(std::size_t offset) { return selfWord(offset, ir_.getPtrTy()); }
  /// Calls a member of HostOps.
  Value* callOps(std::size_t offset, llvm::Type* result, llvm::ArrayRef<Value*> arguments);
  /// Calls a member of PtxMemory.
  void callMemory(std::size_t offset, llvm::ArrayRef<Value*> arguments);
  Value* callSupport(const std::string& name, llvm::Type* result, llvm::ArrayRef<Value*> arguments);
  /// A word in the function's frame.
  llvm::AllocaInst* frameBytes(std::uint64_t bytes, std::uint64_t align);
  /// The carry of add.cc, one bit.
  Value* carry();
  /// 32 bytes in the function's frame, for what one instruction hands over or is given.
  Value* scratch();
  void trap(const std::string& message);
  void trapIf(Value* condition, const std::string& message);
  llvm::BasicBlock* newBlock(const char* name);
  /// Where `ret` goes, and where `exit`: what called the function then ends as well.
  void leave();
  void endThread();
  /// Behind the call of a function: whether the thread has ended in there.
  void afterCall(Value* ended);
  /// Lets others run where the branch that is translated leads back, and the loop may be polling.
  void pauseBeforeBranch();
  llvm::BasicBlock* label(const std::string& name);
  /// Of labels or of functions; null: there is none of this name.
  const BranchTable* branchTable(const std::string& name) const;
  const Prototype* prototype(const std::string& name) const;
  const Instruction& current() const { return *current_; }
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  struct Symbol {
    const Variable* variable = nullptr;
    Value* storage = nullptr;  ///< registers, locals, parameters; null for shared variables
  };
  struct Scope {
    std::map<std::string, Symbol, std::less<>> symbols;
    std::map<std::string, llvm::BasicBlock*, std::less<>> labels;
  };
  void openScope(std::size_t at);
  void declare(const Variable& variable);
  void declareParameters();
  void giveResults();
  void statement(const Statement& statement);
  void instruction(const Instruction& instruction);
  void translated(void (*handler)(Emitter&, const Instruction&), const Instruction& instruction);
  const Symbol* symbol(std::string_view name) const;
  /// What a name stands for as a value: a register's content, or an address; null: nothing is called so.
  Value* named(const NameOperand& name, unsigned bits);
  Value* addressOfSymbol(const NameOperand& name);
  Value* resized(Value* bits, unsigned width, bool isSigned = false);
  /// Calls a member of a table that a member of HostThread points to.
  Value* callTable(std::size_t table, std::size_t offset, llvm::Type* result, llvm::ArrayRef<Value*> arguments);

  Unit& unit_;
  const Function& function_;
  llvm::Function* code_;
  Frame frame_;
  llvm::IRBuilder<> ir_;
  llvm::IRBuilder<> entry_;  ///< before everything else: the frame
  llvm::BasicBlock* leave_ = nullptr;
  llvm::BasicBlock* end_ = nullptr;
  std::vector<Scope> scopes_;
  std::map<std::string, const BranchTable*, std::less<>> tables_;
  std::map<std::string, const Prototype*, std::less<>> prototypes_;
  std::map<std::size_t, Pause> pauses_;
  const Instruction* current_ = nullptr;
  std::size_t at_ = 0;
  Value* pollCount_ = nullptr;
  Value* carry_ = nullptr;
  Value* scratch_ = nullptr;
};

}  // namespace tutti::softgpu::ptx
