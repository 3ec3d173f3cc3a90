#include "softgpu/ptx/translate/unit.h"

#include <cstddef>
#include <utility>

#include "softgpu/ptx/translate/emitter.h"

namespace tutti::softgpu::ptx {
namespace {

constexpr unsigned kAxes = 3;

/// bool(self, arguments, results): whether the thread has ended in it
llvm::Function* declareFunction(Unit& unit, const Function& function) {
  llvm::Type* pointer = llvm::PointerType::get(unit.context, 0);
  auto* type = llvm::FunctionType::get(llvm::Type::getInt1Ty(unit.context), {pointer, pointer, pointer}, false);
  auto* code = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, function.name, unit.module);
  code->setDoesNotThrow();
  return code;
}

/// void(self, params, tid.x … tid.z, ctaid.x … ctaid.z): one thread of the kernel.
llvm::Function* emitKernel(Unit& unit, const Function& kernel) {
  llvm::Type* pointer = llvm::PointerType::get(unit.context, 0);
  std::vector<llvm::Type*> types = {pointer, pointer};
  types.insert(types.end(), 2 * std::size_t{kAxes}, llvm::Type::getInt32Ty(unit.context));
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(unit.context), types, false);
  auto* code = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "kernel", unit.module);
  code->setDoesNotThrow();
  code->addFnAttr(llvm::Attribute::AlwaysInline);
  Frame frame;
  frame.self = code->getArg(0);
  frame.parameters = code->getArg(1);
  for (unsigned axis = 0; axis < kAxes; ++axis) {
    frame.thread[axis] = code->getArg(2 + axis);
    frame.block[axis] = code->getArg(2 + kAxes + axis);
  }
  Emitter(unit, kernel, code, frame).emit();
  return code;
}

/// The exported functions: void(self, params). Parameters are written by nobody while the kernel runs.
llvm::Function* declareEntry(Unit& unit, const char* name) {
  llvm::Type* pointer = llvm::PointerType::get(unit.context, 0);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(unit.context), {pointer, pointer}, false);
  auto* code = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, unit.module);
  code->setDoesNotThrow();
  code->addParamAttr(0, llvm::Attribute::NoAlias);
  code->addParamAttr(1, llvm::Attribute::NoAlias);
  code->addParamAttr(1, llvm::Attribute::ReadOnly);
  return code;
}

/// Words of the thread that an entry function is given.
class Entry {
 public:
  Entry(Unit& unit, const char* name)
      : code_(declareEntry(unit, name)), ir_(llvm::BasicBlock::Create(unit.context, "entry", code_)) {}

  llvm::IRBuilder<>& ir() { return ir_; }
  Value* self() { return code_->getArg(0); }
  Value* word(Value* base, std::size_t offset, llvm::Type* type) {
    llvm::LoadInst* load = ir_.CreateLoad(type, ir_.CreateConstGEP1_64(ir_.getInt8Ty(), base, offset));
    return load;
  }
  Value* selfNumber(std::size_t offset) { return word(self(), offset, ir_.getInt32Ty()); }
  Value* extent(std::size_t offset, unsigned axis) {
    return word(word(self(), offsetof(simt::HostThread, shape), ir_.getPtrTy()), offset + 4U * axis, ir_.getInt32Ty());
  }
  /// The coordinates of a number that counts x fastest.
  std::vector<Value*> coordinates(Value* number, std::size_t extents) {
    Value* x = extent(extents, 0);
    Value* y = extent(extents, 1);
    Value* row = ir_.CreateUDiv(number, x);
    return {ir_.CreateURem(number, x), ir_.CreateURem(row, y), ir_.CreateUDiv(row, y)};
  }
  std::vector<Value*> block() {
    return coordinates(selfNumber(offsetof(simt::HostThread, block)), offsetof(simt::HostShape, grid));
  }
  void callKernel(llvm::Function* kernel, const std::vector<Value*>& thread, const std::vector<Value*>& block) {
    std::vector<Value*> arguments = {self(), code_->getArg(1)};
    arguments.insert(arguments.end(), thread.begin(), thread.end());
    arguments.insert(arguments.end(), block.begin(), block.end());
    ir_.CreateCall(kernel, arguments);
  }
  llvm::BasicBlock* newBlock(const char* name) { return llvm::BasicBlock::Create(ir_.getContext(), name, code_); }

 private:
  llvm::Function* code_;
  llvm::IRBuilder<> ir_;
};

void emitThreadEntry(Unit& unit, llvm::Function* kernel) {
  Entry entry(unit, kThreadEntry);
  const auto thread =
      entry.coordinates(entry.selfNumber(offsetof(simt::HostThread, thread)), offsetof(simt::HostShape, block));
  entry.callKernel(kernel, thread, entry.block());
  entry.ir().CreateRetVoid();
}

/// for z, for y, for x: kernel. Functions that the kernel calls find the thread's number in `self`.
void emitBlockEntry(Unit& unit, llvm::Function* kernel) {
  Entry entry(unit, kBlockEntry);
  llvm::IRBuilder<>& ir = entry.ir();
  const std::vector<Value*> block = entry.block();
  Value* extents[kAxes] = {};
  for (unsigned axis = 0; axis < kAxes; ++axis) extents[axis] = entry.extent(offsetof(simt::HostShape, block), axis);
  struct Loop {
    llvm::PHINode* counter;
    llvm::BasicBlock* head;
  };
  std::vector<Loop> loops;
  for (unsigned depth = 0; depth < kAxes; ++depth) {
    llvm::BasicBlock* before = ir.GetInsertBlock();
    llvm::BasicBlock* head = entry.newBlock("loop");
    ir.CreateBr(head);
    ir.SetInsertPoint(head);
    llvm::PHINode* counter = ir.CreatePHI(ir.getInt32Ty(), 2);
    counter->addIncoming(ir.getInt32(0), before);
    loops.push_back({counter, head});
  }
  const std::vector<Value*> thread = {loops[2].counter, loops[1].counter, loops[0].counter};
  if (unit.reach.functions.size() > 1) {
    Value* row = ir.CreateAdd(thread[1], ir.CreateMul(extents[1], thread[2]));
    Value* number = ir.CreateAdd(thread[0], ir.CreateMul(extents[0], row));
    ir.CreateStore(number, ir.CreateConstGEP1_64(ir.getInt8Ty(), entry.self(), offsetof(simt::HostThread, thread)));
  }
  entry.callKernel(kernel, thread, block);
  for (unsigned depth = kAxes; depth-- > 0;) {
    Value* next = ir.CreateNUWAdd(loops[depth].counter, ir.getInt32(1));
    loops[depth].counter->addIncoming(next, ir.GetInsertBlock());
    llvm::BasicBlock* done = entry.newBlock("done");
    ir.CreateCondBr(ir.CreateICmpULT(next, extents[kAxes - 1 - depth]), loops[depth].head, done);
    ir.SetInsertPoint(done);
  }
  ir.CreateRetVoid();
}

}  // namespace

llvm::FunctionCallee Unit::support(const std::string& name, llvm::Type* result,
                                   llvm::ArrayRef<llvm::Type*> parameters) {
  llvm::FunctionCallee callee = module.getOrInsertFunction(name, llvm::FunctionType::get(result, parameters, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotThrow();
  for (unsigned i = 0; i < parameters.size(); ++i) {
    if (parameters[i]->isIntegerTy(1)) function->addParamAttr(i, llvm::Attribute::ZExt);
  }
  return callee;
}

std::unique_ptr<llvm::Module> translate(const KernelSource& source, const Function& kernel,
                                        llvm::LLVMContext& context) {
  auto module = std::make_unique<llvm::Module>(kernel.name, context);
  const KernelReach& reach = source.reach;
  Unit unit{source, context, *module, {}};
  for (const Function* function : reach.functions) {
    if (function != &kernel) unit.functions[function->name] = declareFunction(unit, *function);
  }
  for (const Function* function : reach.functions) {
    if (function == &kernel) continue;
    llvm::Function* code = unit.functions[function->name];
    Frame frame;
    frame.self = code->getArg(0);
    frame.parameters = code->getArg(1);
    frame.results = code->getArg(2);
    Emitter(unit, *function, code, frame).emit();
  }
  llvm::Function* code = emitKernel(unit, kernel);
  emitThreadEntry(unit, code);
  if (!reach.waits) emitBlockEntry(unit, code);
  return module;
}

}  // namespace tutti::softgpu::ptx
