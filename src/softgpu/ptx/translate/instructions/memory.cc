// Loads, stores, fences, and hints about caches.
#include <cstddef>

#include "softgpu/ptx/translate/handlers.h"
#include "softgpu/ptx/translate/instructions/delayed.h"
#include "softgpu/ptx/translate/instructions/memory_words.h"

namespace tutti::softgpu::ptx {
namespace {

/// Vector accesses are of one piece up to 16 bytes, as GPUs make them and x86 does.
struct Access {
  Type type;
  std::vector<Operand> parts;
  Strength strength = Strength::Weak;
  Space space = Space::Generic;
  Value* address = nullptr;

  unsigned bits() const { return static_cast<unsigned>(parts.size()) * type.bits; }
};

/// `{a, b}`, or a register that is a vector itself.
std::vector<Operand> elementsOfVector(Emitter& e, const Instruction& i, const Operand& value) {
  static constexpr std::string_view kElements = "xyzw";
  const NameOperand* name = value.name();
  const Variable* known = name == nullptr ? nullptr : e.variable(name->name);
  const bool whole = known != nullptr && known->space == Space::Register && known->vector > 1 && name->part.empty();
  if (!whole || !(i.has("v2") || i.has("v4"))) return Emitter::partsOf(value);
  std::vector<Operand> elements;
  for (std::size_t n = 0; n < known->vector; ++n) {
    elements.push_back({NameOperand{name->name, std::string(kElements.substr(n, 1)), 0}, false});
  }
  return elements;
}

Access accessOf(Emitter& e, const Instruction& i, const Operand& value, const Operand& address) {
  Access access;
  access.type = i.type(i.types() - 1);
  access.parts = elementsOfVector(e, i, value);
  access.strength = strengthOf(i);
  access.space = spaceOf(i);
  access.address = e.address(address, access.space);
  if (isDelayed(e, access.space)) checkPlace(e, access.address, access.bits() / 8, access.space);
  return access;
}

/// The elements of an access, the first one lowest, and back.
void writeElements(Emitter& e, const Access& access, Value* all) {
  auto& ir = e.ir();
  const unsigned width = access.type.bits;
  for (unsigned n = 0; n < access.parts.size(); ++n) {
    Value* part = ir.CreateTrunc(ir.CreateLShr(all, std::uint64_t{n} * width), ir.getIntNTy(width));
    e.write(access.parts[n], part, access.type.isSigned());
  }
}
Value* elementsAsOne(Emitter& e, const Access& access) {
  auto& ir = e.ir();
  const unsigned width = access.type.bits;
  Value* all = e.integer(access.bits(), 0);
  for (unsigned n = 0; n < access.parts.size(); ++n) {
    Value* part = ir.CreateZExt(e.bits(access.parts[n], width), all->getType());
    all = ir.CreateOr(all, ir.CreateShl(part, std::uint64_t{n} * width));
  }
  return all;
}

/// As one word or, where that is longer than 8 bytes, as a vector of words of 8 bytes.
llvm::Type* wordType(Emitter& e, const Access& access) {
  if (access.bits() <= 64) return e.ir().getIntNTy(access.bits());
  return llvm::FixedVectorType::get(e.ir().getInt64Ty(), access.bits() / 64);
}

/// The threads of a warp that go together access a line as one, on which protocols with flags in lines rely (LL128).
/// Whether they do; null: an access of this kind is never one.
Value* goTogether(Emitter& e, bool load) {
  if (!accessesLine(e.current())) return nullptr;
  return e.callOps(offsetof(simt::HostOps, together), e.ir().getInt1Ty(), {e.frame().self, e.ir().getInt1(load)});
}

/// `asOne(e)` where `whole` is so, else `apart(e)`: the value of the one that is taken.
template <class AsOne, class Apart>
Value* oneWay(Emitter& e, Value* whole, AsOne asOne, Apart apart) {
  auto& ir = e.ir();
  llvm::BasicBlock* one = e.newBlock("as_one");
  llvm::BasicBlock* other = e.newBlock("apart");
  llvm::BasicBlock* after = e.newBlock("after");
  ir.CreateCondBr(whole, one, other);
  ir.SetInsertPoint(one);
  Value* ofOne = asOne();
  one = ir.GetInsertBlock();
  ir.CreateBr(after);
  ir.SetInsertPoint(other);
  Value* ofOther = apart();
  other = ir.GetInsertBlock();
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
  if (ofOne == nullptr) return nullptr;
  llvm::PHINode* value = ir.CreatePHI(ofOne->getType(), 2);
  value->addIncoming(ofOne, one);
  value->addIncoming(ofOther, other);
  return value;
}

/// `whole`: as goTogether() has it.
void delayedLineStore(Emitter& e, Value* address, Value* bits, Value* whole) {
  const auto store = [&](Delay delay) -> Value* {
    delayedStore(e, address, bits, delay);
    return nullptr;
  };
  if (whole == nullptr) return static_cast<void>(store(Delay::Any));
  oneWay(
      e, whole, [&] { return store(Delay::EndsLine); }, [&] { return store(Delay::Any); });
}

/// `whole`: as goTogether() has it. What goes together looks at memory lane after lane, and sees the line.
Value* delayedStrongLoad(Emitter& e, const Access& access, Value* whole) {
  const unsigned bytes = access.bits() / 8;
  if (access.strength == Strength::Acquire) return delayedAcquiringLoad(e, access.address, bytes, scopeOf(e.current()));
  const auto load = [&](When when) { return delayedLoad(e, access.address, bytes, when); };
  if (whole == nullptr) return load(When::Early);
  return oneWay(
      e, whole, [&] { return load(When::Now); }, [&] { return load(When::Early); });
}

Value* strongLoad(Emitter& e, const Access& access) {
  auto& ir = e.ir();
  Value* whole = goTogether(e, true);
  if (isDelayed(e, access.space)) return delayedStrongLoad(e, access, whole);
  llvm::Type* type = wordType(e, access);
  llvm::LoadInst* load = ir.CreateAlignedLoad(type, access.address, llvm::Align(access.bits() / 8), true);
  if (access.bits() <= 64) {
    load->setAtomic(orderingOf(access.strength));
  } else if (access.strength == Strength::Acquire) {
    ir.CreateFence(llvm::AtomicOrdering::Acquire);
  }
  return ir.CreateBitCast(load, ir.getIntNTy(access.bits()));
}

void strongStore(Emitter& e, const Access& access, Value* bits) {
  auto& ir = e.ir();
  Value* whole = goTogether(e, false);
  if (isDelayed(e, access.space)) {
    if (access.strength == Strength::Release)
      return delayedReleasingStore(e, access.address, bits, scopeOf(e.current()));
    return delayedLineStore(e, access.address, bits, whole);
  }
  if (access.bits() > 64 && access.strength == Strength::Release) ir.CreateFence(llvm::AtomicOrdering::Release);
  Value* word = ir.CreateBitCast(bits, wordType(e, access));
  llvm::StoreInst* store = ir.CreateAlignedStore(word, access.address, llvm::Align(access.bits() / 8), true);
  if (access.bits() <= 64) store->setAtomic(orderingOf(access.strength));
}

void load(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const Access access = accessOf(e, i, i.operands.at(0), i.operands.at(1));
  const unsigned width = access.type.bits;
  if (access.strength != Strength::Weak) return writeElements(e, access, strongLoad(e, access));
  if (isDelayed(e, access.space)) {
    return writeElements(e, access, delayedLoad(e, access.address, access.bits() / 8, When::Early));
  }
  std::vector<Value*> words;
  for (unsigned n = 0; n < access.parts.size(); ++n) {
    Value* place = ir.CreateConstGEP1_64(ir.getInt8Ty(), access.address, n * std::uint64_t{width / 8});
    words.push_back(ir.CreateAlignedLoad(ir.getIntNTy(width), place, llvm::Align(width / 8)));
  }
  for (unsigned n = 0; n < words.size(); ++n) e.write(access.parts[n], words[n], access.type.isSigned());
}

void store(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const Access access = accessOf(e, i, i.operands.at(1), i.operands.at(0));
  const unsigned width = access.type.bits;
  if (access.strength != Strength::Weak) return strongStore(e, access, elementsAsOne(e, access));
  if (isDelayed(e, access.space)) {
    return delayedStore(e, access.address, elementsAsOne(e, access), Delay::Any);
  }
  for (unsigned n = 0; n < access.parts.size(); ++n) {
    Value* place = ir.CreateConstGEP1_64(ir.getInt8Ty(), access.address, n * std::uint64_t{width / 8});
    ir.CreateAlignedStore(e.bits(access.parts[n], width), place, llvm::Align(width / 8));
  }
}

void fence(Emitter& e, const Instruction& i) {
  // Proxies, and what a barrier's initialisation needs, are one memory here.
  if (e.unit().weakMemory) {
    if (i.has("proxy")) return;
    delayedRelease(e, scopeOf(i));
    delayedAcquire(e, scopeOf(i));
    return;
  }
  const bool weak = i.has("acq_rel") || i.has("acquire") || i.has("release");
  e.ir().CreateFence(weak ? llvm::AtomicOrdering::AcquireRelease : llvm::AtomicOrdering::SequentiallyConsistent);
}

void nothing(Emitter&, const Instruction&) {}

void makePolicy(Emitter& e, const Instruction& i) {
  e.write(i.operands.at(0), e.integer(64, 0));
}

}  // namespace

Space spaceOf(const Instruction& i) {
  for (const std::string& modifier : i.modifiers) {
    const std::string_view name = std::string_view(modifier).substr(0, modifier.find(':'));
    if (name == "global") return Space::Global;
    if (name == "shared") return Space::Shared;
    if (name == "local") return Space::Local;
    if (name == "param") return Space::Param;
    if (name == "const") return Space::Constant;
  }
  return Space::Generic;
}

Strength strengthOf(const Instruction& i) {
  if (i.has("acq_rel")) return Strength::AcquireRelease;
  if (i.has("acquire")) return Strength::Acquire;
  if (i.has("release")) return Strength::Release;
  const bool strong = i.has("relaxed") || i.has("volatile") || i.has("mmio");
  return strong ? Strength::Relaxed : Strength::Weak;
}

simt::FenceScope scopeOf(const Instruction& i) {
  if (i.has("cta")) return simt::FenceScope::Block;
  // Volatile accesses, and releases and fences of a cluster or a device, reach at least so far.
  return i.has("sys") ? simt::FenceScope::Sys : simt::FenceScope::Gpu;
}

llvm::AtomicOrdering orderingOf(Strength strength) {
  switch (strength) {
    case Strength::Acquire:
      return llvm::AtomicOrdering::Acquire;
    case Strength::Release:
      return llvm::AtomicOrdering::Release;
    case Strength::AcquireRelease:
      return llvm::AtomicOrdering::AcquireRelease;
    default:
      return llvm::AtomicOrdering::Monotonic;
  }
}

void addMemoryInstructions(Handlers& handlers) {
  handlers["ld"] = handlers["ldu"] = load;
  handlers["st"] = store;
  handlers["fence"] = handlers["membar"] = fence;
  handlers["createpolicy"] = makePolicy;
  for (const std::string_view hint :
       {"prefetch", "prefetchu", "discard", "applypriority", "griddepcontrol", "setmaxnreg", "pmevent"}) {
    handlers[hint] = nothing;
  }
}

}  // namespace tutti::softgpu::ptx
