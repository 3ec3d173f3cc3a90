#include "softgpu/ptx/translate/emitter.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "softgpu/ptx/translate/handlers.h"

namespace tutti::softgpu::ptx {
namespace {

/// The registers that hold a scalar; of a vector, parts are reached by `.x`.
unsigned registerBits(const Variable& variable) {
  return variable.type.bits * variable.vector;
}

constexpr std::uint32_t kSeldom = 64;  ///< rounds of a loop between two pauses, where it does other things as well

}  // namespace

Emitter::Emitter(Unit& unit, const Function& function, llvm::Function* code, const Frame& frame)
    : unit_(unit), function_(function), code_(code), frame_(frame), ir_(unit.context), entry_(unit.context) {
  llvm::BasicBlock* entry = llvm::BasicBlock::Create(unit.context, "frame", code);
  llvm::BasicBlock* begin = llvm::BasicBlock::Create(unit.context, "begin", code);
  entry_.SetInsertPoint(llvm::BranchInst::Create(begin, entry));
  ir_.SetInsertPoint(begin);
  leave_ = llvm::BasicBlock::Create(unit.context, "leave", code);
  end_ = llvm::BasicBlock::Create(unit.context, "end", code);
  pauses_ = pausesOf(function, unit.reach.calledLook);
}

void Emitter::emit() {
  scopes_.emplace_back();
  declareParameters();
  openScope(0);
  for (at_ = 0; at_ < function_.body.size(); ++at_) statement(function_.body[at_]);
  if (ir_.GetInsertBlock()->getTerminator() == nullptr) leave();
  // A kernel's code gives nothing back, a function's whether the thread has ended.
  const bool kernel = frame_.results == nullptr;
  ir_.SetInsertPoint(leave_);
  if (!kernel) giveResults();
  kernel ? ir_.CreateRetVoid() : ir_.CreateRet(ir_.getInt1(false));
  ir_.SetInsertPoint(end_);
  kernel ? ir_.CreateRetVoid() : ir_.CreateRet(ir_.getInt1(true));
}

/// Parameters in memory stay in their block. One in a register is copied from there, a result to there at the end.
void Emitter::declareParameters() {
  const auto add = [&](const std::vector<Variable>& variables, Value* base, bool given) {
    const ParameterLayout layout = layOut(variables);
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const Variable& variable = variables[i];
      Value* place = entry_.CreateConstGEP1_64(entry_.getInt8Ty(), base, layout.params[i].offset);
      if (variable.space != Space::Register) {
        scopes_.back().symbols[variable.name] = {&variable, place};
        continue;
      }
      if (variable.type.bits == 1)
        throw TextError{"a predicate as parameter of a function is not translated", variable.line};
      declare(variable);
      Value* storage = scopes_.back().symbols[variable.name].storage;
      if (given) entry_.CreateStore(entry_.CreateLoad(entry_.getIntNTy(registerBits(variable)), place), storage);
    }
  };
  add(function_.signature.parameters, frame_.parameters, true);
  if (frame_.results != nullptr) add(function_.signature.results, frame_.results, false);
}

void Emitter::giveResults() {
  const std::vector<Variable>& results = function_.signature.results;
  const ParameterLayout layout = layOut(results);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].space != Space::Register) continue;
    Value* value = ir_.CreateLoad(ir_.getIntNTy(registerBits(results[i])), symbol(results[i].name)->storage);
    ir_.CreateStore(value, ir_.CreateConstGEP1_64(ir_.getInt8Ty(), frame_.results, layout.params[i].offset));
  }
}

/// Labels are known in their scope before they come.
void Emitter::openScope(std::size_t at) {
  scopes_.emplace_back();
  int depth = 0;
  for (std::size_t i = at; i < function_.body.size() && depth >= 0; ++i) {
    const Statement& statement = function_.body[i];
    if (const auto* scope = std::get_if<ScopeMark>(&statement)) depth += scope->opens ? 1 : -1;
    if (depth != 0) continue;
    if (const auto* label = std::get_if<LabelMark>(&statement)) {
      scopes_.back().labels[label->name] = newBlock("label");
    } else if (const auto* table = std::get_if<BranchTable>(&statement)) {
      tables_[table->name] = table;
    } else if (const auto* prototype = std::get_if<Prototype>(&statement)) {
      prototypes_[prototype->name] = prototype;
    }
  }
}

llvm::AllocaInst* Emitter::frameBytes(std::uint64_t bytes, std::uint64_t align) {
  llvm::AllocaInst* place = entry_.CreateAlloca(llvm::ArrayType::get(entry_.getInt8Ty(), bytes));
  place->setAlignment(llvm::Align(align));
  return place;
}

void Emitter::declare(const Variable& variable) {
  Symbol symbol{&variable, nullptr};
  if (variable.space == Space::Register) {
    llvm::Type* type = entry_.getIntNTy(registerBits(variable));
    symbol.storage = entry_.CreateAlloca(type);
    // Reading what was never written gives anything on a GPU; here it must not make LLVM's mind wander.
    entry_.CreateStore(llvm::ConstantInt::get(type, 0), symbol.storage);
  } else if (variable.space == Space::Local || variable.space == Space::Param) {
    symbol.storage = frameBytes(std::max<std::uint64_t>(variable.bytes(), 1), std::max(variable.align, 8U));
  } else if (variable.space != Space::Shared) {
    refuse("a variable of this space inside a function");
  }
  scopes_.back().symbols[variable.name] = symbol;
}

void Emitter::statement(const Statement& statement) {
  if (const auto* scope = std::get_if<ScopeMark>(&statement)) {
    if (scope->opens) {
      openScope(at_ + 1);
    } else {
      scopes_.pop_back();
    }
  } else if (const auto* mark = std::get_if<LabelMark>(&statement)) {
    llvm::BasicBlock* block = label(mark->name);
    if (ir_.GetInsertBlock()->getTerminator() == nullptr) ir_.CreateBr(block);
    ir_.SetInsertPoint(block);
  } else if (const auto* variable = std::get_if<Variable>(&statement)) {
    declare(*variable);
  } else if (const auto* given = std::get_if<Instruction>(&statement)) {
    instruction(*given);
  }
}

void Emitter::instruction(const Instruction& instruction) {
  current_ = &instruction;
  const Handler handler = handlerOf(instruction.opcode);
  if (handler == nullptr) refuse("it");
  for (const std::string& modifier : instruction.modifiers) {
    if (!isKnownModifier(modifier)) refuse("'." + modifier + "'");
  }
  // Code behind a branch that nobody jumps to.
  if (ir_.GetInsertBlock()->getTerminator() != nullptr) ir_.SetInsertPoint(newBlock("dead"));
  if (instruction.predicate.empty()) return translated(handler, instruction);
  Operand operand;
  operand.value = NameOperand{instruction.predicate, "", 0};
  operand.negated = instruction.predicateNegated;
  llvm::BasicBlock* does = newBlock("does");
  llvm::BasicBlock* after = newBlock("after");
  ir_.CreateCondBr(predicate(operand), does, after);
  ir_.SetInsertPoint(does);
  translated(handler, instruction);
  if (ir_.GetInsertBlock()->getTerminator() == nullptr) ir_.CreateBr(after);
  ir_.SetInsertPoint(after);
}

void Emitter::translated(void (*handler)(Emitter&, const Instruction&), const Instruction& instruction) {
  try {
    handler(*this, instruction);
  } catch (const std::out_of_range&) {
    refuse("it with " + std::to_string(instruction.operands.size()) + " operands");
  }
}

void Emitter::refuse(const std::string& what) const {
  const std::string text = current_ == nullptr ? "" : current_->text();
  throw TextError{"instruction '" + text + "': " + what + " is not translated",
                  current_ == nullptr ? function_.line : current_->line};
}

llvm::BasicBlock* Emitter::newBlock(const char* name) {
  return llvm::BasicBlock::Create(unit_.context, name, code_, leave_);
}

llvm::BasicBlock* Emitter::label(const std::string& name) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->labels.find(name);
    if (found != scope->labels.end()) return found->second;
  }
  throw TextError{"label " + name + " is not there", current_ == nullptr ? function_.line : current_->line};
}

void Emitter::leave() {
  ir_.CreateBr(leave_);
}

void Emitter::endThread() {
  ir_.CreateBr(end_);
}

void Emitter::afterCall(Value* ended) {
  llvm::BasicBlock* goesOn = newBlock("returned");
  ir_.CreateCondBr(ended, end_, goesOn);
  ir_.SetInsertPoint(goesOn);
}

void Emitter::pauseBeforeBranch() {
  const auto pause = pauses_.find(at_);
  if (pause == pauses_.end() || pause->second == Pause::Never) return;
  const auto callPause = [&](bool again) {
    callOps(offsetof(simt::HostOps, pause), ir_.getVoidTy(), {frame_.self, ir_.getInt1(again)});
  };
  if (pause->second == Pause::Always) return callPause(true);
  if (pollCount_ == nullptr) {
    pollCount_ = entry_.CreateAlloca(entry_.getInt32Ty());
    entry_.CreateStore(entry_.getInt32(0), pollCount_);
  }
  Value* count = ir_.CreateAdd(ir_.CreateLoad(ir_.getInt32Ty(), pollCount_), ir_.getInt32(1));
  ir_.CreateStore(count, pollCount_);
  llvm::BasicBlock* pauses = newBlock("pauses");
  llvm::BasicBlock* after = newBlock("after");
  ir_.CreateCondBr(ir_.CreateICmpEQ(ir_.CreateURem(count, ir_.getInt32(kSeldom)), ir_.getInt32(0)), pauses, after);
  ir_.SetInsertPoint(pauses);
  callPause(false);
  ir_.CreateBr(after);
  ir_.SetInsertPoint(after);
}

const BranchTable* Emitter::branchTable(const std::string& name) const {
  const auto found = tables_.find(name);
  return found == tables_.end() ? nullptr : found->second;
}

const Prototype* Emitter::prototype(const std::string& name) const {
  const auto found = prototypes_.find(name);
  return found == prototypes_.end() ? nullptr : found->second;
}

Value* Emitter::selfWord(std::size_t offset, llvm::Type* type) {
  if (offset != offsetof(simt::HostThread, thread)) return constantLoad(frame_.self, offset, type);
  // A loop over the threads of a block changes it.
  return ir_.CreateLoad(type, ir_.CreateConstGEP1_64(ir_.getInt8Ty(), frame_.self, offset));
}

Value* Emitter::constantLoad(Value* base, std::size_t offset, llvm::Type* type) {
  llvm::LoadInst* load = ir_.CreateLoad(type, ir_.CreateConstGEP1_64(ir_.getInt8Ty(), base, offset));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(unit_.context, {}));
  return load;
}

Value* Emitter::callTable(std::size_t table, std::size_t offset, llvm::Type* result, llvm::ArrayRef<Value*> arguments) {
  Value* target = constantLoad(selfPointer(table), offset, ir_.getPtrTy());
  std::vector<llvm::Type*> types;
  for (Value* argument : arguments) types.push_back(argument->getType());
  llvm::CallInst* call = ir_.CreateCall(llvm::FunctionType::get(result, types, false), target, arguments);
  for (unsigned i = 0; i < arguments.size(); ++i) {
    // A bool of C++ is a byte that is 0 or 1.
    if (arguments[i]->getType()->isIntegerTy(1)) call->addParamAttr(i, llvm::Attribute::ZExt);
  }
  return call;
}

Value* Emitter::callOps(std::size_t offset, llvm::Type* result, llvm::ArrayRef<Value*> arguments) {
  return callTable(offsetof(simt::HostThread, ops), offset, result, arguments);
}

void Emitter::callMemory(std::size_t offset, llvm::ArrayRef<Value*> arguments) {
  callTable(offsetof(simt::HostThread, memory), offset, ir_.getVoidTy(), arguments);
}

Value* Emitter::callSupport(const std::string& name, llvm::Type* result, llvm::ArrayRef<Value*> arguments) {
  std::vector<llvm::Type*> types;
  for (Value* argument : arguments) types.push_back(argument->getType());
  return ir_.CreateCall(unit_.support(name, result, types), arguments);
}

Value* Emitter::carry() {
  if (carry_ == nullptr) {
    carry_ = entry_.CreateAlloca(entry_.getInt1Ty());
    entry_.CreateStore(entry_.getInt1(false), carry_);
  }
  return carry_;
}

Value* Emitter::scratch() {
  constexpr std::uint64_t kWidest = 32;
  if (scratch_ == nullptr) scratch_ = frameBytes(kWidest, kWidest);
  return scratch_;
}

void Emitter::trapIf(Value* condition, const std::string& message) {
  llvm::BasicBlock* traps = newBlock("traps");
  llvm::BasicBlock* after = newBlock("after");
  ir_.CreateCondBr(condition, traps, after);
  ir_.SetInsertPoint(traps);
  trap(message);
  ir_.SetInsertPoint(after);
}

void Emitter::trap(const std::string& message) {
  Value* text = ir_.CreateGlobalString(message);
  callOps(offsetof(simt::HostOps, trap), ir_.getVoidTy(), {frame_.self, text});
  ir_.CreateUnreachable();
}

}  // namespace tutti::softgpu::ptx
