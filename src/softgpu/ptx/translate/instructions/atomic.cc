// Atomic operations: atom, and red, which is the same without a result.
#include "softgpu/ptx/translate/handlers.h"
#include "softgpu/ptx/translate/instructions/delayed.h"
#include "softgpu/ptx/translate/instructions/elements.h"
#include "softgpu/ptx/translate/instructions/memory_words.h"

namespace tutti::softgpu::ptx {
namespace {

using llvm::AtomicRMWInst;

struct Operation {
  std::string_view name;
  AtomicRMWInst::BinOp asUnsigned;
  AtomicRMWInst::BinOp asSigned;
};
constexpr Operation kOperations[] = {
    {"add", AtomicRMWInst::Add, AtomicRMWInst::Add},
    {"min", AtomicRMWInst::UMin, AtomicRMWInst::Min},
    {"max", AtomicRMWInst::UMax, AtomicRMWInst::Max},
    {"and", AtomicRMWInst::And, AtomicRMWInst::And},
    {"or", AtomicRMWInst::Or, AtomicRMWInst::Or},
    {"xor", AtomicRMWInst::Xor, AtomicRMWInst::Xor},
    {"exch", AtomicRMWInst::Xchg, AtomicRMWInst::Xchg},
    {"inc", AtomicRMWInst::UIncWrap, AtomicRMWInst::UIncWrap},
    {"dec", AtomicRMWInst::UDecWrap, AtomicRMWInst::UDecWrap},
};

llvm::Align alignOf(Type type) {
  return llvm::Align(type.bits / 8U);
}

Value* compareAndSwap(Emitter& e, const Instruction& i, Value* address, Type type, std::size_t first) {
  auto& ir = e.ir();
  Value* expected = e.bits(i.operands.at(first), type.bits);
  Value* desired = e.bits(i.operands.at(first + 1), type.bits);
  const auto success = orderingOf(strengthOf(i));
  const auto failure = llvm::AtomicCmpXchgInst::getStrongestFailureOrdering(success);
  return ir.CreateExtractValue(ir.CreateAtomicCmpXchg(address, expected, desired, alignOf(type), success, failure), 0);
}

/// A loop of compare-and-swap around `make`, which turns old bits into new ones.
template <class Make>
Value* changed(Emitter& e, const Instruction& i, Value* address, Type type, const Make& make) {
  auto& ir = e.ir();
  llvm::Type* word = ir.getIntNTy(type.bits);
  llvm::LoadInst* first = ir.CreateAlignedLoad(word, address, alignOf(type));
  first->setAtomic(llvm::AtomicOrdering::Monotonic);
  llvm::BasicBlock* before = ir.GetInsertBlock();
  llvm::BasicBlock* again = e.newBlock("again");
  llvm::BasicBlock* done = e.newBlock("done");
  ir.CreateBr(again);
  ir.SetInsertPoint(again);
  llvm::PHINode* old = ir.CreatePHI(word, 2);
  old->addIncoming(first, before);
  const auto success = orderingOf(strengthOf(i));
  Value* result = ir.CreateAtomicCmpXchg(address, old, make(old), alignOf(type), success,
                                         llvm::AtomicCmpXchgInst::getStrongestFailureOrdering(success));
  old->addIncoming(ir.CreateExtractValue(result, 0), ir.GetInsertBlock());
  ir.CreateCondBr(ir.CreateExtractValue(result, 1), done, again);
  ir.SetInsertPoint(done);
  return old;
}

/// Sums and extremes of floats, packed or not.
Value* changeFloats(Emitter& e, const Instruction& i, Value* address, Type type, const Operand& operand) {
  auto& ir = e.ir();
  const std::vector<Value*> with = elementsOf(e, operand, type);
  const Type element = elementOf(type);
  return changed(e, i, address, type, [&](Value* old) {
    std::vector<Value*> results;
    for (unsigned n = 0; n < type.packed; ++n) {
      Value* bits = ir.CreateTrunc(ir.CreateLShr(old, n * element.bits), ir.getIntNTy(element.bits));
      Value* number = e.numberOf(bits, element);
      if (i.has("add")) {
        number = ir.CreateFAdd(number, with[n]);
      } else if (i.has("min") || i.has("max")) {
        number = i.has("min") ? ir.CreateMinNum(number, with[n]) : ir.CreateMaxNum(number, with[n]);
      } else {
        e.refuse("this operation on floats");
      }
      results.push_back(number);
    }
    return packed(e, results, type);
  });
}

Value* change(Emitter& e, const Instruction& i, Value* address, Type type, std::size_t first) {
  auto& ir = e.ir();
  if (i.has("cas")) return compareAndSwap(e, i, address, type, first);
  if (type.isFloat() && !i.has("exch")) return changeFloats(e, i, address, type, i.operands.at(first));
  Value* with = e.bits(i.operands.at(first), type.bits);
  if (type.bits == 128) {
    if (!i.has("exch")) e.refuse("this operation on 128 bits");
    return changed(e, i, address, type, [&](Value*) { return with; });
  }
  for (const Operation& operation : kOperations) {
    if (!i.has(operation.name)) continue;
    const auto which = type.isSigned() ? operation.asSigned : operation.asUnsigned;
    return ir.CreateAtomicRMW(which, address, with, alignOf(type), orderingOf(strengthOf(i)));
  }
  e.refuse("this operation");
}

void checkForm(Emitter& e, const Instruction& i) {
  for (const std::string_view vector : {"v2", "v4", "v8"}) {
    if (i.has(vector)) e.refuse("an atomic operation on a vector");
  }
  if (i.has("async")) e.refuse("an asynchronous reduction");
}

/// The place of an atomic operation, ready for it.
Value* placeOf(Emitter& e, const Instruction& i, const Operand& operand) {
  const Space space = spaceOf(i);
  Value* address = e.address(operand, space);
  if (!isDelayed(e, space)) return address;
  const unsigned bytes = i.type().bits / 8U;
  checkPlace(e, address, bytes, space);
  const Strength strength = strengthOf(i);
  if (strength == Strength::Release || strength == Strength::AcquireRelease) delayedRelease(e, scopeOf(i));
  settle(e, address, bytes);
  return address;
}

/// The operation has been made. No later load of the thread is older, and after one of acquire order none of others.
void finish(Emitter& e, const Instruction& i, Value* place) {
  if (!isDelayed(e, spaceOf(i))) return;
  settle(e, place, i.type().bits / 8U);
  const Strength strength = strengthOf(i);
  if (strength == Strength::Acquire || strength == Strength::AcquireRelease) delayedAcquire(e, scopeOf(i));
}

void atomic(Emitter& e, const Instruction& i) {
  checkForm(e, i);
  const Type type = i.type();
  Value* place = placeOf(e, i, i.operands.at(1));
  Value* old = change(e, i, place, type, 2);
  finish(e, i, place);
  e.write(i.operands[0], old, type.isSigned());
}

void reduce(Emitter& e, const Instruction& i) {
  checkForm(e, i);
  Value* place = placeOf(e, i, i.operands.at(0));
  change(e, i, place, i.type(), 1);
  finish(e, i, place);
}

}  // namespace

void addAtomicInstructions(Handlers& handlers) {
  handlers["atom"] = atomic;
  handlers["red"] = reduce;
}

}  // namespace tutti::softgpu::ptx
