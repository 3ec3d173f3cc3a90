// Branches, ends of threads and functions, and calls.
#include "softgpu/ptx/translate/handlers.h"

namespace tutti::softgpu::ptx {
namespace {

void branchTo(Emitter& e, const Instruction& i) {
  const NameOperand* label = i.operands.at(0).name();
  if (label == nullptr) e.refuse("a branch to what is no label");
  e.pauseBeforeBranch();
  e.ir().CreateBr(e.label(label->name));
}

/// brx.idx: by a table of labels; beyond it a GPU does anything, here the thread or function ends.
void branchByIndex(Emitter& e, const Instruction& i) {
  const NameOperand* name = i.operands.at(1).name();
  if (name == nullptr) e.refuse("a table without a name");
  const BranchTable* table = e.branchTable(name->name);
  if (table == nullptr) e.refuse("a branch by '" + name->name + "', which is not there,");
  Value* index = e.bits(i.operands.at(0), 32);
  e.pauseBeforeBranch();
  llvm::BasicBlock* beyond = e.newBlock("beyond");
  llvm::SwitchInst* jump = e.ir().CreateSwitch(index, beyond, static_cast<unsigned>(table->targets.size()));
  for (unsigned n = 0; n < table->targets.size(); ++n) jump->addCase(e.ir().getInt32(n), e.label(table->targets[n]));
  e.ir().SetInsertPoint(beyond);
  e.leave();
}

void giveBack(Emitter& e, const Instruction&) {
  e.leave();
}

void endThread(Emitter& e, const Instruction&) {
  e.endThread();
}

void trapHere(Emitter& e, const Instruction& i) {
  e.trap("line " + std::to_string(i.line) + " of the kernel's PTX says trap");
}

void rest(Emitter& e, const Instruction&) {
  e.callOps(offsetof(simt::HostOps, pause), e.ir().getVoidTy(), {e.frame().self, e.ir().getInt1(false)});
}

void allocate(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  llvm::AllocaInst* place = ir.CreateAlloca(ir.getInt8Ty(), e.bits(i.operands.at(1), 64));
  place->setAlignment(llvm::Align(16));
  e.write(i.operands[0], ir.CreatePtrToInt(place, ir.getInt64Ty()));
}

}  // namespace

void addControlInstructions(Handlers& handlers) {
  handlers["bra"] = branchTo;
  handlers["brx"] = branchByIndex;
  handlers["ret"] = giveBack;
  handlers["exit"] = endThread;
  handlers["trap"] = handlers["brkpt"] = trapHere;
  handlers["nanosleep"] = rest;
  handlers["alloca"] = allocate;
}

}  // namespace tutti::softgpu::ptx
