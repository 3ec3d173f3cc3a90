// Comparisons and selections.
#include <string_view>

#include "softgpu/ptx/translate/handlers.h"
#include "softgpu/ptx/translate/instructions/elements.h"
#include "softgpu/ptx/translate/instructions/numbers.h"

namespace tutti::softgpu::ptx {
namespace {

using llvm::CmpInst;

struct Comparison {
  std::string_view name;
  CmpInst::Predicate asSigned;
  CmpInst::Predicate asUnsigned;
  CmpInst::Predicate asFloat;
};
constexpr CmpInst::Predicate kNone = CmpInst::BAD_ICMP_PREDICATE;
constexpr Comparison kComparisons[] = {
    {"eq", CmpInst::ICMP_EQ, CmpInst::ICMP_EQ, CmpInst::FCMP_OEQ},
    {"ne", CmpInst::ICMP_NE, CmpInst::ICMP_NE, CmpInst::FCMP_ONE},
    {"lt", CmpInst::ICMP_SLT, CmpInst::ICMP_ULT, CmpInst::FCMP_OLT},
    {"le", CmpInst::ICMP_SLE, CmpInst::ICMP_ULE, CmpInst::FCMP_OLE},
    {"gt", CmpInst::ICMP_SGT, CmpInst::ICMP_UGT, CmpInst::FCMP_OGT},
    {"ge", CmpInst::ICMP_SGE, CmpInst::ICMP_UGE, CmpInst::FCMP_OGE},
    {"lo", CmpInst::ICMP_ULT, CmpInst::ICMP_ULT, kNone},
    {"ls", CmpInst::ICMP_ULE, CmpInst::ICMP_ULE, kNone},
    {"hi", CmpInst::ICMP_UGT, CmpInst::ICMP_UGT, kNone},
    {"hs", CmpInst::ICMP_UGE, CmpInst::ICMP_UGE, kNone},
    {"equ", kNone, kNone, CmpInst::FCMP_UEQ},
    {"neu", kNone, kNone, CmpInst::FCMP_UNE},
    {"ltu", kNone, kNone, CmpInst::FCMP_ULT},
    {"leu", kNone, kNone, CmpInst::FCMP_ULE},
    {"gtu", kNone, kNone, CmpInst::FCMP_UGT},
    {"geu", kNone, kNone, CmpInst::FCMP_UGE},
    {"num", kNone, kNone, CmpInst::FCMP_ORD},
    {"nan", kNone, kNone, CmpInst::FCMP_UNO},
};

Value* compared(Emitter& e, const Instruction& i, Value* a, Value* b, Type type) {
  for (const Comparison& comparison : kComparisons) {
    if (i.modifiers.empty() || i.modifiers[0] != comparison.name) continue;
    const auto predicate = type.isFloat()    ? comparison.asFloat
                           : type.isSigned() ? comparison.asSigned
                                             : comparison.asUnsigned;
    if (predicate == kNone) break;
    if (!type.isFloat()) return e.ir().CreateICmp(predicate, a, b);
    return e.ir().CreateFCmp(predicate, flushed(e, i, a, type), flushed(e, i, b, type));
  }
  e.refuse("this comparison");
}

/// With the predicate that stands behind, by `.and`, `.or` or `.xor`.
Value* combined(Emitter& e, const Instruction& i, Value* result, Value* with) {
  if (with == nullptr) return result;
  if (i.has("and")) return e.ir().CreateAnd(result, with);
  if (i.has("or")) return e.ir().CreateOr(result, with);
  if (i.has("xor")) return e.ir().CreateXor(result, with);
  e.refuse("this combination");
}

/// The type of the operands: the last that is named.
Type comparedType(const Instruction& i) {
  return i.type(i.types() - 1);
}

std::vector<Value*> comparedElements(Emitter& e, const Instruction& i) {
  const Type type = comparedType(i);
  const auto left = elementsOf(e, i.operands.at(1), type);
  const auto right = elementsOf(e, i.operands.at(2), type);
  std::vector<Value*> results;
  for (std::size_t n = 0; n < left.size(); ++n) {
    results.push_back(compared(e, i, left[n], right[n], elementOf(type)));
  }
  return results;
}

/// p|q: of one comparison q is what p would be were it the other way round; of packed operands each has its own.
void setPredicate(Emitter& e, const Instruction& i) {
  const std::vector<Operand> to = Emitter::partsOf(i.operands.at(0));
  Value* with = i.operands.size() > 3 ? e.predicate(i.operands[3]) : nullptr;
  const std::vector<Value*> results = comparedElements(e, i);
  Value* first = combined(e, i, results[0], with);
  Value* second = nullptr;
  if (to.size() > 1) {
    second = combined(e, i, results.size() > 1 ? results[1] : e.ir().CreateNot(results[0]), with);
  }
  e.write(to[0], first);
  if (second != nullptr) e.write(to[1], second);
}

/// set: true is all ones, or 1.0 where the result is a float.
void set(Emitter& e, const Instruction& i) {
  auto& ir = e.ir();
  const Type to = i.type(0);
  Value* with = i.operands.size() > 3 ? e.predicate(i.operands[3]) : nullptr;
  const std::vector<Value*> results = comparedElements(e, i);
  if (to.packed == 1 && results.size() == 2) {
    // Two halves, each a mask of its own.
    Value* low = ir.CreateSExt(combined(e, i, results[0], with), ir.getInt16Ty());
    Value* high = ir.CreateSExt(combined(e, i, results[1], with), ir.getInt16Ty());
    Value* both =
        ir.CreateOr(ir.CreateZExt(low, ir.getInt32Ty()), ir.CreateShl(ir.CreateZExt(high, ir.getInt32Ty()), 16));
    return e.write(i.operands[0], both);
  }
  std::vector<Value*> numbers;
  for (Value* result : results) {
    Value* value = combined(e, i, result, with);
    const Type element = elementOf(to);
    numbers.push_back(element.isFloat() ? ir.CreateUIToFP(value, e.typeOf(element))
                                        : ir.CreateSExt(value, ir.getIntNTy(element.bits)));
  }
  e.write(i.operands[0], packed(e, numbers, to));
}

void select(Emitter& e, const Instruction& i) {
  const unsigned width = i.type().bits;
  Value* a = e.bits(i.operands.at(1), width);
  Value* b = e.bits(i.operands.at(2), width);
  e.write(i.operands[0], e.ir().CreateSelect(e.predicate(i.operands.at(3)), a, b), i.type().isSigned());
}

/// slct: by the sign of a third operand.
void selectBySign(Emitter& e, const Instruction& i) {
  const Type type = i.type(0);
  Value* a = e.bits(i.operands.at(1), type.bits);
  Value* b = e.bits(i.operands.at(2), type.bits);
  Value* c = e.number(i.operands.at(3), i.type(1));
  Value* first = i.type(1).isFloat()
                     ? e.ir().CreateFCmpOGE(flushed(e, i, c, i.type(1)), llvm::ConstantFP::get(c->getType(), 0))
                     : e.ir().CreateICmpSGE(c, e.integer(32, 0));
  e.write(i.operands[0], e.ir().CreateSelect(first, a, b), type.isSigned());
}

}  // namespace

void addCompareInstructions(Handlers& handlers) {
  handlers["setp"] = setPredicate;
  handlers["set"] = set;
  handlers["selp"] = select;
  handlers["slct"] = selectBySign;
}

}  // namespace tutti::softgpu::ptx
