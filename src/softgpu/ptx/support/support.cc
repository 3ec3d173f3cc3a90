#include "softgpu/ptx/support/support.h"

#include <cmath>
#include <cstring>

#include "softgpu/ptx/support/functions.h"

namespace tutti::softgpu::ptx {
namespace {

// Functions of the C library that LLVM makes of instructions this processor does not have, and of copies.
using Unary = float (*)(float);
using Unary64 = double (*)(double);
template <class Function>
void* address(Function function) {
  return reinterpret_cast<void*>(function);
}

#define OWN(name) \
  { #name, address(name) }
#define UNARY(name)                                      \
  {#name "f", address(static_cast<Unary>(std::name))}, { \
#name, address(static_cast <Unary64>(std::name))     \
  }

const SupportFunction kFunctions[] = {
    OWN(ptx_add_f32),
    OWN(ptx_sub_f32),
    OWN(ptx_mul_f32),
    OWN(ptx_div_f32),
    OWN(ptx_fma_f32),
    OWN(ptx_sqrt_f32),
    OWN(ptx_add_f64),
    OWN(ptx_sub_f64),
    OWN(ptx_mul_f64),
    OWN(ptx_div_f64),
    OWN(ptx_fma_f64),
    OWN(ptx_sqrt_f64),
    OWN(ptx_f64_to_f32),
    OWN(ptx_signed_to_f32),
    OWN(ptx_unsigned_to_f32),
    OWN(ptx_signed_to_f64),
    OWN(ptx_unsigned_to_f64),
    OWN(ptx_signed_to_odd),
    OWN(ptx_unsigned_to_odd),
    OWN(ptx_f16_bits),
    OWN(ptx_bf16_bits),
    OWN(ptx_tf32_bits),
    OWN(ptx_e4m3_bits),
    OWN(ptx_e5m2_bits),
    OWN(ptx_from_e4m3),
    OWN(ptx_from_e5m2),
    OWN(ptx_fma_f16),
    OWN(ptx_fma_bf16),
    OWN(ptx_permute),
    OWN(ptx_find_nth),
    OWN(ptx_field),
    OWN(ptx_field_signed),
    OWN(ptx_mask),
    OWN(ptx_extend),
    OWN(ptx_extend_signed),
    OWN(ptx_mbarrier_init),
    OWN(ptx_mbarrier_arrive),
    OWN(ptx_mbarrier_bytes),
    OWN(ptx_mbarrier_pending),
    OWN(ptx_mbarrier_done),
    OWN(ptx_mbarrier_parity_done),
    OWN(ptx_timer),
    OWN(ptx_on_stack),
    OWN(ptx_vprintf),
    OWN(ptx_malloc),
    OWN(ptx_free),
    OWN(ptx_assert_text),
    OWN(ptx_warp_sync),
    OWN(ptx_shuffle),
    OWN(ptx_votes),
    OWN(ptx_match),
    OWN(ptx_reduce),
    UNARY(sin),
    UNARY(cos),
    UNARY(exp2),
    UNARY(log2),
    UNARY(tanh),
    UNARY(floor),
    UNARY(ceil),
    UNARY(trunc),
    UNARY(rint),
    {"roundevenf", address(roundevenf)},
    {"roundeven", address(static_cast<Unary64>(roundeven))},
    {"fmaf", address(static_cast<float (*)(float, float, float)>(std::fma))},
    {"fma", address(static_cast<double (*)(double, double, double)>(std::fma))},
    {"memcpy", address(std::memcpy)},
    {"memmove", address(std::memmove)},
    {"memset", address(std::memset)},
};

#undef OWN
#undef UNARY

}  // namespace

std::span<const SupportFunction> supportFunctions() {
  return kFunctions;
}

}  // namespace tutti::softgpu::ptx
