// Calls. Arguments and results travel in blocks of bytes, laid out like a kernel's parameters: they serve numbers and
// structures, known targets and unknown ones alike, and where LLVM inlines the target nothing of them stays.
#include "softgpu/ptx/translate/handlers.h"
#include "softgpu/ptx/translate/instructions/delayed.h"

namespace tutti::softgpu::ptx {
namespace {

struct Blocks {
  Value* arguments = nullptr;
  Value* results = nullptr;
};

const std::vector<Operand>& groupOf(const Operand& operand) {
  static const std::vector<Operand> kNone;
  const GroupOperand* group = operand.group();
  return group == nullptr ? kNone : group->parts;
}

/// Copies between the `.param` variables of the caller and a block.
void copyParts(Emitter& e, const std::vector<Operand>& parts, const ParameterLayout& layout, Value* block, bool in) {
  auto& ir = e.ir();
  if (parts.size() != layout.params.size()) e.refuse("a call with another number of parameters than its target has");
  for (std::size_t n = 0; n < parts.size(); ++n) {
    const auto [offset, bytes] = layout.params[n];
    Value* place = ir.CreateConstGEP1_64(ir.getInt8Ty(), block, offset);
    const NameOperand* name = parts[n].name();
    const Variable* variable = name == nullptr ? nullptr : e.variable(name->name);
    if (variable == nullptr || variable->space != Space::Param) {
      // A register or a number.
      if (!in) {
        e.write(parts[n], ir.CreateAlignedLoad(ir.getIntNTy(bytes * 8), place, llvm::Align(1)));
      } else {
        ir.CreateAlignedStore(e.bits(parts[n], bytes * 8), place, llvm::Align(1));
      }
      continue;
    }
    Value* local = e.address({AddressOperand{*name, 0}, false}, Space::Param);
    if (in) {
      ir.CreateMemCpy(place, llvm::Align(1), local, llvm::Align(1), bytes);
    } else {
      ir.CreateMemCpy(local, llvm::Align(1), place, llvm::Align(1), bytes);
    }
  }
}

constexpr std::uint64_t kBlockAlign = 16;

Blocks prepare(Emitter& e, const Instruction& i, const Signature& signature) {
  const ParameterLayout arguments = layOut(signature.parameters);
  const ParameterLayout results = layOut(signature.results);
  const Blocks blocks{e.frameBytes(arguments.bytes + 1, kBlockAlign), e.frameBytes(results.bytes + 1, kBlockAlign)};
  copyParts(e, groupOf(i.operands[2]), arguments, blocks.arguments, true);
  return blocks;
}

void finish(Emitter& e, const Instruction& i, const Signature& signature, const Blocks& blocks) {
  copyParts(e, groupOf(i.operands[0]), layOut(signature.results), blocks.results, false);
}

void callFunction(Emitter& e, const std::string& name, const Blocks& blocks) {
  e.afterCall(e.ir().CreateCall(e.unit().functions.at(name), {e.frame().self, blocks.arguments, blocks.results}));
}

void callBuiltIn(Emitter& e, const std::string& name, const Blocks& blocks) {
  auto& ir = e.ir();
  if (name == "__assertfail") {
    Value* text = e.callSupport("ptx_assert_text", ir.getPtrTy(), {blocks.arguments});
    e.callOps(offsetof(simt::HostOps, trap), ir.getVoidTy(), {e.frame().self, text});
    ir.CreateUnreachable();
    return;
  }
  // Stores that wait must not find the memory of somebody else.
  if (name == "free" && e.unit().weakMemory) delayedFence(e, simt::FenceScope::Sys);
  e.callSupport("ptx_" + name, ir.getVoidTy(), {blocks.arguments, blocks.results});
}

bool alike(const Signature& a, const Signature& b) {
  const auto shapes = [](const Signature& signature) {
    std::vector<std::uint64_t> all;
    for (const Variable& parameter : signature.parameters) all.push_back(parameter.bytes());
    all.push_back(~std::uint64_t{0});
    for (const Variable& result : signature.results) all.push_back(result.bytes());
    return all;
  };
  return shapes(a) == shapes(b);
}

/// What `.callprototype` or the first of `.calltargets` says; null: there is nothing of this name.
const Signature* signatureOf(Emitter& e, const std::string& name) {
  if (const Prototype* prototype = e.prototype(name)) return &prototype->signature;
  const BranchTable* targets = e.branchTable(name);
  if (targets == nullptr || targets->targets.empty()) return nullptr;
  const auto& functions = e.unit().program.functions;
  const auto found = functions.find(targets->targets[0]);
  return found == functions.end() ? nullptr : &found->second->signature;
}

/// By the number that stands for the function's address, among those whose address is taken.
void callIndirectly(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const NameOperand* known = i.operands.size() > 3 ? i.operands[3].name() : nullptr;
  const Signature* signature = known == nullptr ? nullptr : signatureOf(e, known->name);
  if (signature == nullptr) e.refuse("an indirect call without a prototype");
  const Blocks blocks = prepare(e, i, *signature);
  llvm::BasicBlock* nowhere = e.newBlock("nowhere");
  llvm::BasicBlock* after = e.newBlock("after");
  llvm::SwitchInst* which = ir.CreateSwitch(e.bits(i.operands[1], 64), nowhere);
  for (const std::string& name : e.unit().layout.addressed) {
    if (!alike(e.unit().program.functions.at(name)->signature, *signature)) continue;
    llvm::BasicBlock* here = e.newBlock("target");
    which->addCase(ir.getInt64(*e.unit().layout.functionNumber(name)), here);
    ir.SetInsertPoint(here);
    callFunction(e, name, blocks);
    ir.CreateBr(after);
  }
  ir.SetInsertPoint(nowhere);
  e.trap("line " + std::to_string(i.line) + " of the kernel's PTX calls through what is no address of a function of " +
         "its type");
  ir.SetInsertPoint(after);
  finish(e, i, *signature, blocks);
}

void call(Emitter& e, const Instruction& i) {
  const NameOperand* target = i.operands.at(1).name();
  if (target == nullptr) e.refuse("this target");
  if (target->name.starts_with('%')) return callIndirectly(e, i);
  const auto found = e.unit().program.functions.find(target->name);
  if (found == e.unit().program.functions.end()) e.refuse("a call of " + target->name + ", which is not declared,");
  const Signature& signature = found->second->signature;
  const Blocks blocks = prepare(e, i, signature);
  if (found->second->defined) {
    callFunction(e, target->name, blocks);
  } else {
    callBuiltIn(e, target->name, blocks);
    if (e.ir().GetInsertBlock()->getTerminator() != nullptr) return;
  }
  finish(e, i, signature, blocks);
}

}  // namespace

void addCallInstructions(Handlers& handlers) {
  handlers["call"] = call;
}

}  // namespace tutti::softgpu::ptx
