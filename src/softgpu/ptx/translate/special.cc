#include "softgpu/ptx/translate/special.h"

#include <cstddef>
#include <map>
#include <string_view>

namespace tutti::softgpu::ptx {
namespace {

int axisOf(std::string_view part) {
  return part == "x" ? 0 : part == "y" ? 1 : part == "z" ? 2 : -1;
}

Value* shapeWord(Emitter& e, std::size_t offset) {
  return e.constantLoad(e.selfPointer(offsetof(simt::HostThread, shape)), offset, e.ir().getInt32Ty());
}

Value* selfNumber(Emitter& e, std::size_t offset) {
  return e.selfWord(offset, e.ir().getInt32Ty());
}

/// The coordinate of a number that counts x fastest.
Value* coordinate(Emitter& e, Value* number, std::size_t extents, int axis) {
  for (int i = 0; i < axis; ++i)
    number = e.ir().CreateUDiv(number, shapeWord(e, extents + 4U * static_cast<unsigned>(i)));
  if (axis == 2) return number;
  return e.ir().CreateURem(number, shapeWord(e, extents + 4U * static_cast<unsigned>(axis)));
}

Value* placeOf(Emitter& e, std::string_view name, int axis) {
  auto& ir = e.ir();
  if (axis < 0) return nullptr;
  if (name == "%ntid") return shapeWord(e, offsetof(simt::HostShape, block) + 4U * static_cast<unsigned>(axis));
  if (name == "%nctaid" || name == "%nclusterid") {
    return shapeWord(e, offsetof(simt::HostShape, grid) + 4U * static_cast<unsigned>(axis));
  }
  if (name == "%tid") {
    if (e.frame().thread[axis] != nullptr) return e.frame().thread[axis];
    return coordinate(e, selfNumber(e, offsetof(simt::HostThread, thread)), offsetof(simt::HostShape, block), axis);
  }
  if (name == "%ctaid" || name == "%clusterid") {
    if (e.frame().block[axis] != nullptr) return e.frame().block[axis];
    return coordinate(e, selfNumber(e, offsetof(simt::HostThread, block)), offsetof(simt::HostShape, grid), axis);
  }
  // Clusters are of one block.
  if (name == "%cluster_ctaid") return ir.getInt32(0);
  if (name == "%cluster_nctaid") return ir.getInt32(1);
  return nullptr;
}

/// tid.x + ntid.x * (tid.y + ntid.y * tid.z)
Value* threadNumber(Emitter& e) {
  auto& ir = e.ir();
  if (e.frame().thread[0] == nullptr) return selfNumber(e, offsetof(simt::HostThread, thread));
  Value* rows = ir.CreateAdd(e.frame().thread[1], ir.CreateMul(placeOf(e, "%ntid", 1), e.frame().thread[2]));
  return ir.CreateAdd(e.frame().thread[0], ir.CreateMul(placeOf(e, "%ntid", 0), rows));
}

Value* laneMask(Emitter& e, std::string_view which) {
  auto& ir = e.ir();
  Value* lane = ir.CreateAnd(threadNumber(e), ir.getInt32(31));
  Value* bit = ir.CreateShl(ir.getInt32(1), lane);
  Value* below = ir.CreateSub(bit, ir.getInt32(1));
  if (which == "eq") return bit;
  if (which == "lt") return below;
  if (which == "le") return ir.CreateOr(below, bit);
  Value* fromHere = ir.CreateNot(below);
  return which == "ge" ? fromHere : ir.CreateXor(fromHere, bit);
}

Value* sharedSize(Emitter& e, bool whole) {
  Value* dynamic = shapeWord(e, offsetof(simt::HostShape, dynamicSharedBytes));
  return whole ? e.ir().CreateAdd(dynamic, e.ir().getInt32(e.unit().reach.sharedBytes)) : dynamic;
}

Value* clock(Emitter& e, std::string_view name) {
  auto& ir = e.ir();
  if (name == "%globaltimer" || name == "%globaltimer_lo") return e.callSupport("ptx_timer", ir.getInt64Ty(), {});
  if (name == "%globaltimer_hi") return ir.CreateLShr(e.callSupport("ptx_timer", ir.getInt64Ty(), {}), 32);
  Value* cycles = ir.CreateIntrinsic(ir.getInt64Ty(), llvm::Intrinsic::readcyclecounter, {});
  return name == "%clock_hi" ? ir.CreateLShr(cycles, 32) : cycles;
}

}  // namespace

Value* specialRegister(Emitter& e, const NameOperand& operand) {
  const std::string_view name = operand.name;
  auto& ir = e.ir();
  if (Value* place = placeOf(e, name, axisOf(operand.part))) return place;
  if (!operand.part.empty()) return nullptr;
  if (name == "%envreg1" || name == "%envreg2") {
    // Where cooperative groups look for the words in which a grid meets.
    Value* shape = e.selfPointer(offsetof(simt::HostThread, shape));
    Value* workspace = e.constantLoad(shape, offsetof(simt::HostShape, workspace), ir.getInt64Ty());
    return name == "%envreg1" ? ir.CreateLShr(workspace, 32) : workspace;
  }
  if (name == "%laneid") return ir.CreateAnd(threadNumber(e), ir.getInt32(31));
  if (name == "%warpid") return ir.CreateLShr(threadNumber(e), 5);
  if (name == "%nwarpid") return ir.getInt32(64);
  if (name == "%smid" || name == "%gridid") return ir.getInt32(0);
  if (name == "%nsmid") return ir.getInt32(1);
  if (name == "%cluster_ctarank") return ir.getInt32(0);
  if (name == "%cluster_nctarank") return ir.getInt32(1);
  if (name == "%is_explicit_cluster") return ir.getInt1(false);
  if (name.starts_with("%lanemask_")) return laneMask(e, name.substr(10));
  if (name == "%dynamic_smem_size") return sharedSize(e, false);
  if (name == "%total_smem_size" || name == "%aggr_smem_size") return sharedSize(e, true);
  if (name.starts_with("%clock") || name.starts_with("%globaltimer")) return clock(e, name);
  return nullptr;
}

}  // namespace tutti::softgpu::ptx
