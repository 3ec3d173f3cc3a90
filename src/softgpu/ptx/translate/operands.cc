// Operands: registers, numbers, addresses.
#include <algorithm>
#include <array>
#include <cstddef>

#include "softgpu/ptx/translate/emitter.h"
#include "softgpu/ptx/translate/special.h"

namespace tutti::softgpu::ptx {
namespace {

/// `.x` to `.w`, also `.r` to `.a`; -1: none of them.
int elementOf(std::string_view part) {
  static constexpr std::string_view kPlaces = "xyzw";
  static constexpr std::string_view kColours = "rgba";
  if (part.size() != 1) return -1;
  const std::size_t place = std::min(kPlaces.find(part[0]), kColours.find(part[0]));
  return place == std::string_view::npos ? -1 : static_cast<int>(place);
}

std::uint64_t bitsOfNumber(const NumberOperand& number, unsigned bits) {
  if (number.floatBits == 0 || number.floatBits == bits) return number.bits;
  if (number.floatBits == 64 && bits == 32) {
    return __builtin_bit_cast(std::uint32_t, static_cast<float>(__builtin_bit_cast(double, number.bits)));
  }
  if (number.floatBits == 32 && bits == 64) {
    return __builtin_bit_cast(std::uint64_t,
                              double{__builtin_bit_cast(float, static_cast<std::uint32_t>(number.bits))});
  }
  return number.bits;
}

}  // namespace

const Emitter::Symbol* Emitter::symbol(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->symbols.find(name);
    if (found != scope->symbols.end()) return &found->second;
  }
  return nullptr;
}

const Variable* Emitter::variable(std::string_view name) const {
  const Symbol* found = symbol(name);
  if (found != nullptr) return found->variable;
  for (const auto& [shared, offset] : unit_.reach.shared) {
    if (shared->name == name) return shared;
  }
  return nullptr;
}

Value* Emitter::resized(Value* bits, unsigned width, bool isSigned) {
  llvm::Type* type = ir_.getIntNTy(width);
  return isSigned ? ir_.CreateSExtOrTrunc(bits, type) : ir_.CreateZExtOrTrunc(bits, type);
}

/// Of a shared variable the place in shared memory; of all others the address.
Value* Emitter::addressOfSymbol(const NameOperand& name) {
  Value* address = nullptr;
  const Variable* known = variable(name.name);
  if (known != nullptr && known->space == Space::Shared) {
    address = ir_.getInt64(unit_.reach.shared.at(known));
  } else if (known != nullptr) {
    address = ir_.CreatePtrToInt(symbol(name.name)->storage, ir_.getInt64Ty());
  } else if (const auto offset = unit_.layout.offsets.find(name.name); offset != unit_.layout.offsets.end()) {
    Value* base = selfPointer(offsetof(simt::HostThread, variables));
    address = ir_.CreateAdd(ir_.CreatePtrToInt(base, ir_.getInt64Ty()), ir_.getInt64(offset->second));
  } else if (const auto number = unit_.layout.functionNumber(name.name)) {
    address = ir_.getInt64(*number);
  } else {
    return nullptr;
  }
  return name.offset == 0 ? address : ir_.CreateAdd(address, ir_.getInt64(static_cast<std::uint64_t>(name.offset)));
}

Value* Emitter::named(const NameOperand& name, unsigned bits) {
  const Symbol* found = symbol(name.name);
  if (found != nullptr && found->variable->space == Space::Register) {
    llvm::Type* type = llvm::cast<llvm::AllocaInst>(found->storage)->getAllocatedType();
    Value* whole = ir_.CreateLoad(type, found->storage);
    const int element = elementOf(name.part);
    if (element >= 0) {
      const unsigned width = found->variable->type.bits;
      whole = resized(ir_.CreateLShr(whole, static_cast<unsigned>(element) * width), width);
    }
    return resized(whole, bits);
  }
  if (name.name[0] == '%') {
    Value* special = specialRegister(*this, name);
    return special == nullptr ? nullptr : resized(special, bits);
  }
  if (name.name == "WARP_SZ") return integer(bits, 32);
  Value* address = addressOfSymbol(name);
  return address == nullptr ? nullptr : resized(address, bits);
}

Value* Emitter::bits(const Operand& operand, unsigned bits) {
  if (const NumberOperand* number = operand.number()) {
    return llvm::ConstantInt::get(unit_.context, llvm::APInt(bits, bitsOfNumber(*number, bits)));
  }
  const NameOperand* name = operand.name();
  if (name == nullptr) refuse("this kind of operand");
  Value* value = named(*name, bits);
  if (value == nullptr) refuse("operand '" + name->name + (name->part.empty() ? "" : ".") + name->part + "'");
  if (operand.negated) return bits == 1 ? ir_.CreateNot(value) : ir_.CreateNeg(value);
  return value;
}

Value* Emitter::predicate(const Operand& operand) {
  return bits(operand, 1);
}

llvm::Type* Emitter::typeOf(Type type) {
  if (!type.isFloat()) return ir_.getIntNTy(type.bits);
  return type.bits == 64 && type.packed == 1 ? ir_.getDoubleTy() : ir_.getFloatTy();
}

Value* Emitter::numberOf(Value* bits, Type type) {
  if (!type.isFloat()) return bits;
  if (type.bits == 64) return ir_.CreateBitCast(bits, ir_.getDoubleTy());
  if (type.bits == 32) return ir_.CreateBitCast(bits, ir_.getFloatTy());
  if (type.kind == Kind::BFloat) {
    return ir_.CreateBitCast(ir_.CreateShl(ir_.CreateZExt(bits, ir_.getInt32Ty()), 16), ir_.getFloatTy());
  }
  return ir_.CreateFPExt(ir_.CreateBitCast(bits, ir_.getHalfTy()), ir_.getFloatTy());
}

Value* Emitter::bitsOf(Value* number, Type type) {
  if (!type.isFloat()) return number;
  if (type.bits >= 32) return ir_.CreateBitCast(number, ir_.getIntNTy(type.bits));
  Value* isNan = ir_.CreateFCmpUNO(number, number);
  Value* rounded = nullptr;
  if (type.kind == Kind::BFloat) {
    // To the nearest, to even between two: what is cut off carries if it is more than half, or half and the last
    // bit that stays is odd.
    Value* bits = ir_.CreateBitCast(number, ir_.getInt32Ty());
    Value* odd = ir_.CreateAnd(ir_.CreateLShr(bits, 16), ir_.getInt32(1));
    Value* carried = ir_.CreateAdd(ir_.CreateAdd(bits, ir_.getInt32(0x7fff)), odd);
    rounded = ir_.CreateTrunc(ir_.CreateLShr(carried, 16), ir_.getInt16Ty());
  } else {
    rounded = ir_.CreateBitCast(ir_.CreateFPTrunc(number, ir_.getHalfTy()), ir_.getInt16Ty());
  }
  return ir_.CreateSelect(isNan, ir_.getInt16(0x7fff), rounded);
}

Value* Emitter::number(const Operand& operand, Type type) {
  Value* value = numberOf(bits(operand, type.bits), type);
  return value;
}

void Emitter::write(const Operand& destination, Value* bits, bool isSigned) {
  if (destination.isSink()) return;
  const NameOperand* name = destination.name();
  const Symbol* found = name == nullptr ? nullptr : symbol(name->name);
  if (found == nullptr || found->variable->space != Space::Register) refuse("this kind of destination");
  const auto* storage = llvm::cast<llvm::AllocaInst>(found->storage);
  const unsigned width = storage->getAllocatedType()->getIntegerBitWidth();
  const int element = elementOf(name->part);
  if (element < 0) {
    ir_.CreateStore(resized(bits, width, isSigned), found->storage);
    return;
  }
  const unsigned part = found->variable->type.bits;
  Value* place = ir_.getIntN(width, 0);
  place = ir_.CreateShl(resized(resized(bits, part, isSigned), width), static_cast<unsigned>(element) * part);
  const llvm::APInt others = ~llvm::APInt::getBitsSet(width, static_cast<unsigned>(element) * part,
                                                      (static_cast<unsigned>(element) + 1) * part);
  Value* old = ir_.CreateLoad(ir_.getIntNTy(width), found->storage);
  Value* kept = ir_.CreateAnd(old, llvm::ConstantInt::get(unit_.context, others));
  ir_.CreateStore(ir_.CreateOr(kept, place), found->storage);
}

void Emitter::writeNumber(const Operand& destination, Value* number, Type type) {
  write(destination, bitsOf(number, type), type.isSigned());
}

std::vector<Operand> Emitter::partsOf(const Operand& operand) {
  if (const GroupOperand* group = operand.group()) return group->parts;
  return {operand};
}

Value* Emitter::genericOf(Value* address, Space space) {
  if (space != Space::Shared) return address;
  Value* base = ir_.CreatePtrToInt(selfPointer(offsetof(simt::HostThread, shared)), ir_.getInt64Ty());
  return ir_.CreateAdd(base, resized(address, 64));
}

Value* Emitter::spaceOf(Value* address, Space space) {
  if (space != Space::Shared) return address;
  Value* base = ir_.CreatePtrToInt(selfPointer(offsetof(simt::HostThread, shared)), ir_.getInt64Ty());
  return ir_.CreateSub(address, base);
}

Value* Emitter::address(const Operand& operand, Space space) {
  const AddressOperand* given = operand.address();
  if (given == nullptr) refuse("this kind of address");
  Value* base = ir_.getInt64(0);
  if (!given->base.name.empty()) {
    // Of parameters and local variables the word in the frame, so that LLVM can keep it in a register.
    const Symbol* found = symbol(given->base.name);
    const std::int64_t offset = given->base.offset + given->offset;
    if (found != nullptr && (found->variable->space == Space::Param || found->variable->space == Space::Local)) {
      return ir_.CreateConstGEP1_64(ir_.getInt8Ty(), found->storage, static_cast<std::uint64_t>(offset));
    }
    base = named(given->base, 64);
    if (base == nullptr) refuse("address '" + given->base.name + "'");
    // A variable that lies in shared memory, reached by a generic instruction.
    const Variable* known = variable(given->base.name);
    if (space == Space::Generic && known != nullptr && known->space == Space::Shared) space = Space::Shared;
  }
  Value* whole = base;
  if (space == Space::Shared) {
    Value* shared = selfPointer(offsetof(simt::HostThread, shared));
    whole = ir_.CreateAdd(base, ir_.getInt64(static_cast<std::uint64_t>(given->offset)));
    return ir_.CreateGEP(ir_.getInt8Ty(), shared, whole);
  }
  Value* pointer = ir_.CreateIntToPtr(whole, ir_.getPtrTy());
  return given->offset == 0
             ? pointer
             : ir_.CreateConstGEP1_64(ir_.getInt8Ty(), pointer, static_cast<std::uint64_t>(given->offset));
}

}  // namespace tutti::softgpu::ptx
