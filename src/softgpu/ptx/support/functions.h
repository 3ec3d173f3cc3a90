// The functions themselves: plain C, called from machine code that LLVM made. Numbers of rounding modes: 0 nearest, 1
// towards zero, 2 down, 3 up, 4 nearest with halves away from zero.
#pragma once

#include <cstdint>

#include "device/simt/simt_host_abi.h"

extern "C" {
// Rounded arithmetic.
float ptx_add_f32(float a, float b, std::uint32_t rounding);
float ptx_sub_f32(float a, float b, std::uint32_t rounding);
float ptx_mul_f32(float a, float b, std::uint32_t rounding);
float ptx_div_f32(float a, float b, std::uint32_t rounding);
float ptx_fma_f32(float a, float b, float c, std::uint32_t rounding);
float ptx_sqrt_f32(float a, std::uint32_t rounding);
double ptx_add_f64(double a, double b, std::uint32_t rounding);
double ptx_sub_f64(double a, double b, std::uint32_t rounding);
double ptx_mul_f64(double a, double b, std::uint32_t rounding);
double ptx_div_f64(double a, double b, std::uint32_t rounding);
double ptx_fma_f64(double a, double b, double c, std::uint32_t rounding);
double ptx_sqrt_f64(double a, std::uint32_t rounding);
float ptx_f64_to_f32(double a, std::uint32_t rounding);
float ptx_signed_to_f32(std::int64_t a, std::uint32_t rounding);
float ptx_unsigned_to_f32(std::uint64_t a, std::uint32_t rounding);
double ptx_signed_to_f64(std::int64_t a, std::uint32_t rounding);
double ptx_unsigned_to_f64(std::uint64_t a, std::uint32_t rounding);
/// Cut to a double, with the last bit set if anything was cut off: a second rounding then comes out right.
double ptx_signed_to_odd(std::int64_t a);
double ptx_unsigned_to_odd(std::uint64_t a);

// Small floats. `rounding` + 16: what is too large becomes the largest number.
std::uint32_t ptx_f16_bits(double a, std::uint32_t rounding);
std::uint32_t ptx_bf16_bits(double a, std::uint32_t rounding);
std::uint32_t ptx_tf32_bits(float a, std::uint32_t rounding);
std::uint32_t ptx_e4m3_bits(float a);
std::uint32_t ptx_e5m2_bits(float a);
float ptx_from_e4m3(std::uint32_t bits);
float ptx_from_e5m2(std::uint32_t bits);
float ptx_fma_f16(float a, float b, float c);
float ptx_fma_bf16(float a, float b, float c);

// Bits.
std::uint32_t ptx_permute(std::uint32_t a, std::uint32_t b, std::uint32_t control, std::uint32_t mode);
std::uint32_t ptx_find_nth(std::uint32_t mask, std::uint32_t base, std::uint32_t offset);
std::uint64_t ptx_field(std::uint64_t a, std::uint32_t place, std::uint32_t length, std::uint32_t width);
std::uint64_t ptx_field_signed(std::int64_t a, std::uint32_t place, std::uint32_t length, std::uint32_t width);
std::uint32_t ptx_mask(std::uint32_t place, std::uint32_t length, std::uint32_t wrap);
std::uint32_t ptx_extend(std::uint32_t a, std::uint32_t length, std::uint32_t wrap);
std::uint32_t ptx_extend_signed(std::uint32_t a, std::uint32_t length, std::uint32_t wrap);

// Barriers in memory: 8 bytes, of which programs know nothing.
void ptx_mbarrier_init(std::uint64_t* object, std::uint32_t count);
/// `count` arrivals, and `bytes` more bytes to wait for; `drops`: later phases need fewer. Returns what it was before.
std::uint64_t ptx_mbarrier_arrive(tutti::simt::HostThread* self, std::uint64_t* object, std::uint32_t count,
                                  std::uint32_t bytes, bool drops);
/// Bytes to wait for; below 0: that have come.
void ptx_mbarrier_bytes(std::uint64_t* object, std::int32_t more);
std::uint32_t ptx_mbarrier_pending(std::uint64_t state);
bool ptx_mbarrier_done(const std::uint64_t* object, std::uint64_t state);
bool ptx_mbarrier_parity_done(const std::uint64_t* object, std::uint32_t parity);

// The system.
std::uint64_t ptx_timer();
bool ptx_on_stack(std::uint64_t address);
/// Functions of the device's library, with blocks of arguments and results as translate/call.cc lays them out.
void ptx_vprintf(const void* arguments, void* results);
void ptx_malloc(const void* arguments, void* results);
void ptx_free(const void* arguments, void* results);
const char* ptx_assert_text(const void* arguments);

// Lanes of a warp.
void ptx_warp_sync(tutti::simt::HostThread* self, std::uint32_t mask);
/// Mode: 0 up, 1 down, 2 butterfly, 3 index. Below the value, in bit 32 whether the lane was in range.
std::uint64_t ptx_shuffle(tutti::simt::HostThread* self, std::uint32_t value, std::uint32_t by, std::uint32_t limits,
                          std::uint32_t mask, std::uint32_t mode);
/// Below the lanes that said yes, above those that voted.
std::uint64_t ptx_votes(tutti::simt::HostThread* self, std::uint32_t mask, std::uint32_t yes);
/// The lanes whose value is the same.
std::uint32_t ptx_match(tutti::simt::HostThread* self, std::uint32_t mask, std::uint64_t value);
/// Operation: 0 add, 1 min, 2 max, 3 and, 4 or, 5 xor; + 8: of signed numbers.
std::uint32_t ptx_reduce(tutti::simt::HostThread* self, std::uint32_t mask, std::uint32_t value,
                         std::uint32_t operation);
}
