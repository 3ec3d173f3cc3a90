// Bits: logic, shifts, fields, counts.
#include "softgpu/ptx/translate/handlers.h"

namespace tutti::softgpu::ptx {
namespace {

/// The type; shifts and logic of `.pred` are of one bit.
unsigned widthOf(const Instruction& i) {
  return i.type().bits;
}

void logic(Emitter& e, const Instruction& i) {
  Value* a = e.bits(i.operands.at(1), widthOf(i));
  Value* b = e.bits(i.operands.at(2), widthOf(i));
  e.write(i.operands[0], i.opcode == "and"  ? e.ir().CreateAnd(a, b)
                         : i.opcode == "or" ? e.ir().CreateOr(a, b)
                                            : e.ir().CreateXor(a, b));
}

void invert(Emitter& e, const Instruction& i) {
  Value* a = e.bits(i.operands.at(1), widthOf(i));
  if (i.opcode == "not") return e.write(i.operands[0], e.ir().CreateNot(a));
  Value* none = e.ir().CreateICmpEQ(a, e.integer(widthOf(i), 0));
  e.write(i.operands[0], e.ir().CreateZExt(none, a->getType()));
}

/// Each bit of the result is the bit of the table that the bits of a, b and c number.
void threeInputLogic(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const Operand& result = i.operands.at(0);
  const bool withPredicate = i.operands.size() > 5;
  const NumberOperand* table = i.operands.at(4).number();
  if (table == nullptr) e.refuse("a table that is no number");
  Value* given[3] = {e.bits(i.operands[1], 32), e.bits(i.operands[2], 32), e.bits(i.operands[3], 32)};
  Value* all = ir.getInt32(0);
  for (unsigned row = 0; row < 8; ++row) {
    if ((table->bits >> row & 1) == 0) continue;
    Value* match = llvm::ConstantInt::getAllOnesValue(ir.getInt32Ty());
    for (unsigned n = 0; n < 3; ++n)
      match = ir.CreateAnd(match, (row >> (2 - n) & 1) != 0 ? given[n] : ir.CreateNot(given[n]));
    all = ir.CreateOr(all, match);
  }
  const std::vector<Operand> results = Emitter::partsOf(result);
  e.write(results[0], all);
  if (!withPredicate) return;
  Value* any = ir.CreateICmpNE(all, ir.getInt32(0));
  Value* q = e.predicate(i.operands[5]);
  e.write(results.at(1), i.has("and") ? ir.CreateAnd(any, q) : ir.CreateOr(any, q));
}

/// Amounts beyond the width give zeros, or the sign.
Value* shifted(Emitter& e, const std::string& opcode, Value* a, Value* amount, Type type) {
  auto& ir = e.ir();
  Value* last = ir.getInt32(type.bits - 1U);
  Value* beyond = ir.CreateICmpUGT(amount, last);
  Value* within = ir.CreateZExtOrTrunc(ir.CreateSelect(beyond, last, amount), a->getType());
  if (opcode == "shr" && type.isSigned()) return ir.CreateAShr(a, within);
  Value* moved = opcode == "shl" ? ir.CreateShl(a, within) : ir.CreateLShr(a, within);
  return ir.CreateSelect(beyond, e.integer(type.bits, 0), moved);
}

void shift(Emitter& e, const Instruction& i) {
  const Type type = i.type();
  Value* a = e.bits(i.operands.at(1), type.bits);
  e.write(i.operands[0], shifted(e, i.opcode, a, e.bits(i.operands.at(2), 32), type), type.isSigned());
}

/// 32 of the 64 bits that b (above) and a are.
void funnelShift(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  Value* low = e.bits(i.operands.at(1), 32);
  Value* high = e.bits(i.operands.at(2), 32);
  Value* amount = e.bits(i.operands.at(3), 32);
  if (i.has("clamp")) {
    amount = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, amount, ir.getInt32(32));
  } else {
    amount = ir.CreateAnd(amount, ir.getInt32(31));
  }
  llvm::Type* wide = ir.getInt64Ty();
  Value* whole = ir.CreateOr(ir.CreateShl(ir.CreateZExt(high, wide), 32), ir.CreateZExt(low, wide));
  Value* by = ir.CreateZExt(amount, wide);
  Value* result = i.has("l") ? ir.CreateLShr(ir.CreateShl(whole, by), 32) : ir.CreateLShr(whole, by);
  e.write(i.operands[0], ir.CreateTrunc(result, ir.getInt32Ty()));
}

void permute(Emitter& e, const Instruction& i) {
  unsigned mode = 0;
  static constexpr std::string_view kModes[] = {"", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
  for (unsigned n = 1; n < std::size(kModes); ++n) mode = i.has(kModes[n]) ? n : mode;
  Value* words[3] = {e.bits(i.operands.at(1), 32), e.bits(i.operands.at(2), 32), e.bits(i.operands.at(3), 32)};
  e.write(i.operands[0],
          e.callSupport("ptx_permute", e.ir().getInt32Ty(), {words[0], words[1], words[2], e.ir().getInt32(mode)}));
}

void count(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  Value* a = e.bits(i.operands.at(1), widthOf(i));
  Value* result = i.opcode == "popc" ? ir.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, a)
                                     : ir.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, a, ir.getInt1(false));
  e.write(i.operands[0], ir.CreateZExtOrTrunc(result, ir.getInt32Ty()));
}

void reverse(Emitter& e, const Instruction& i) {
  e.write(i.operands.at(0),
          e.ir().CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, e.bits(i.operands.at(1), widthOf(i))));
}

/// The place of the highest bit that differs from the sign, or how far it is from the top; all ones if there is none.
void findHighest(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const Type type = i.type();
  Value* a = e.bits(i.operands.at(1), type.bits);
  if (type.isSigned()) a = ir.CreateXor(a, ir.CreateAShr(a, type.bits - 1U));
  Value* above = ir.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, a, ir.getInt1(false));
  above = ir.CreateZExtOrTrunc(above, ir.getInt32Ty());
  Value* place = i.has("shiftamt") ? above : ir.CreateSub(ir.getInt32(type.bits - 1U), above);
  Value* none = ir.CreateICmpEQ(a, e.integer(type.bits, 0));
  e.write(i.operands[0], ir.CreateSelect(none, ir.getInt32(~0U), place));
}

void findNth(Emitter& e, const Instruction& i) {
  Value* words[3] = {e.bits(i.operands.at(1), 32), e.bits(i.operands.at(2), 32), e.bits(i.operands.at(3), 32)};
  e.write(i.operands[0], e.callSupport("ptx_find_nth", e.ir().getInt32Ty(), {words[0], words[1], words[2]}));
}

/// bfe and bfi, by functions that follow PTX's pseudo-code for lengths and places beyond the word.
void extractField(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const Type type = i.type();
  llvm::Type* wide = ir.getInt64Ty();
  Value* a = e.bits(i.operands.at(1), type.bits);
  a = type.isSigned() ? ir.CreateSExt(a, wide) : ir.CreateZExt(a, wide);
  Value* place = ir.CreateAnd(e.bits(i.operands.at(2), 32), ir.getInt32(255));
  Value* length = ir.CreateAnd(e.bits(i.operands.at(3), 32), ir.getInt32(255));
  const char* name = type.isSigned() ? "ptx_field_signed" : "ptx_field";
  Value* field = e.callSupport(name, wide, {a, place, length, ir.getInt32(type.bits)});
  e.write(i.operands[0], ir.CreateTrunc(field, ir.getIntNTy(type.bits)), type.isSigned());
}

void insertField(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const unsigned width = widthOf(i);
  llvm::Type* wide = ir.getInt64Ty();
  Value* a = ir.CreateZExt(e.bits(i.operands.at(1), width), wide);
  Value* b = ir.CreateZExt(e.bits(i.operands.at(2), width), wide);
  Value* place = ir.CreateAnd(e.bits(i.operands.at(3), 32), ir.getInt32(255));
  Value* length = ir.CreateAnd(e.bits(i.operands.at(4), 32), ir.getInt32(255));
  // min(length, width - place) bits, none if place is beyond the word.
  Value* room = ir.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, ir.getInt32(width), place);
  Value* taken = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, length, room);
  Value* takenWide = ir.CreateZExt(taken, wide);
  Value* full = ir.CreateICmpUGE(takenWide, ir.getInt64(64));
  Value* lowest = ir.CreateSub(ir.CreateShl(ir.getInt64(1), ir.CreateAnd(takenWide, ir.getInt64(63))), ir.getInt64(1));
  lowest = ir.CreateSelect(full, ir.getInt64(~std::uint64_t{0}), lowest);
  Value* by = ir.CreateAnd(ir.CreateZExt(place, wide), ir.getInt64(63));
  Value* beyond = ir.CreateICmpUGE(place, ir.getInt32(width));
  Value* mask = ir.CreateSelect(beyond, ir.getInt64(0), ir.CreateShl(lowest, by));
  Value* result = ir.CreateOr(ir.CreateAnd(ir.CreateShl(a, by), mask), ir.CreateAnd(b, ir.CreateNot(mask)));
  e.write(i.operands[0], ir.CreateTrunc(result, ir.getIntNTy(width)));
}

/// bmsk: b ones from place a on; szext: the lowest b bits of a, filled with sign or zeros.
void mask(Emitter& e, const Instruction& i) {
  Value* a = e.bits(i.operands.at(1), 32);
  Value* b = e.bits(i.operands.at(2), 32);
  const bool wrap = i.has("wrap");
  const std::string name = i.opcode == "bmsk" ? "ptx_mask" : i.type().isSigned() ? "ptx_extend_signed" : "ptx_extend";
  e.write(i.operands[0], e.callSupport(name, e.ir().getInt32Ty(), {a, b, e.ir().getInt32(wrap ? 1 : 0)}));
}

}  // namespace

void addBitInstructions(Handlers& handlers) {
  handlers["and"] = handlers["or"] = handlers["xor"] = logic;
  handlers["not"] = handlers["cnot"] = invert;
  handlers["lop3"] = threeInputLogic;
  handlers["shl"] = handlers["shr"] = shift;
  handlers["shf"] = funnelShift;
  handlers["prmt"] = permute;
  handlers["popc"] = handlers["clz"] = count;
  handlers["brev"] = reverse;
  handlers["bfind"] = findHighest;
  handlers["fns"] = findNth;
  handlers["bfe"] = extractField;
  handlers["bfi"] = insertField;
  handlers["bmsk"] = handlers["szext"] = mask;
}

}  // namespace tutti::softgpu::ptx
