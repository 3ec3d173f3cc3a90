#include "softgpu/ptx/text/types.h"

#include <algorithm>
#include <iterator>

namespace tutti::softgpu::ptx {
namespace {

struct NamedType {
  std::string_view name;
  Type type;
};
constexpr NamedType kTypes[] = {
    {"b8", {Kind::Bits, 8}},
    {"b16", {Kind::Bits, 16}},
    {"b32", {Kind::Bits, 32}},
    {"b64", {Kind::Bits, 64}},
    {"b128", {Kind::Bits, 128}},
    {"u8", {Kind::Unsigned, 8}},
    {"u16", {Kind::Unsigned, 16}},
    {"u32", {Kind::Unsigned, 32}},
    {"u64", {Kind::Unsigned, 64}},
    {"s8", {Kind::Signed, 8}},
    {"s16", {Kind::Signed, 16}},
    {"s32", {Kind::Signed, 32}},
    {"s64", {Kind::Signed, 64}},
    {"u16x2", {Kind::Unsigned, 32, 2}},
    {"s16x2", {Kind::Signed, 32, 2}},
    {"f16", {Kind::Float, 16}},
    {"f16x2", {Kind::Float, 32, 2}},
    {"bf16", {Kind::BFloat, 16}},
    {"bf16x2", {Kind::BFloat, 32, 2}},
    {"tf32", {Kind::TensorFloat, 32}},
    {"f32", {Kind::Float, 32}},
    {"f32x2", {Kind::Float, 64, 2}},
    {"f64", {Kind::Float, 64}},
    {"e4m3", {Kind::E4M3, 8}},
    {"e5m2", {Kind::E5M2, 8}},
    {"e4m3x2", {Kind::E4M3, 16, 2}},
    {"e5m2x2", {Kind::E5M2, 16, 2}},
    {"u4", {Kind::Unsigned, 4}},
    {"s4", {Kind::Signed, 4}},
    {"u2", {Kind::Unsigned, 2}},
    {"s2", {Kind::Signed, 2}},
    // Handles, which only instructions that are not translated look into.
    {"texref", {Kind::Bits, 64}},
    {"samplerref", {Kind::Bits, 64}},
    {"surfref", {Kind::Bits, 64}},
    {"pred", {Kind::Predicate, 1}},
};

}  // namespace

std::optional<Type> typeOf(std::string_view name) {
  const auto* found = std::ranges::find(kTypes, name, &NamedType::name);
  if (found == std::end(kTypes)) return std::nullopt;
  return found->type;
}

}  // namespace tutti::softgpu::ptx
