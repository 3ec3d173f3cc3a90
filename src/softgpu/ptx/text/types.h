// The types of PTX's instructions and variables.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tutti::softgpu::ptx {

enum class Kind : std::uint8_t { Bits, Unsigned, Signed, Float, BFloat, Predicate, TensorFloat, E4M3, E5M2 };

/// One of PTX's fundamental types. Packed types (`f16x2`) have the kind of their elements and `packed` of them.
struct Type {
  Kind kind = Kind::Bits;
  std::uint16_t bits = 32;  ///< of the whole; 1 for predicates
  std::uint8_t packed = 1;

  std::uint32_t bytes() const { return bits / 8u; }
  bool isSigned() const { return kind == Kind::Signed; }
  bool isInteger() const { return kind == Kind::Bits || kind == Kind::Unsigned || kind == Kind::Signed; }
  bool isFloat() const { return kind == Kind::Float || kind == Kind::BFloat || kind == Kind::TensorFloat; }
  /// Half precision of one of the two forms, or two of them.
  bool isSmallFloat() const { return isFloat() && bits / packed == 16; }
  friend bool operator==(const Type&, const Type&) = default;
};

/// The type of a name as it stands behind a dot (`u32`, `f16x2`, `pred`); none if it is no type.
std::optional<Type> typeOf(std::string_view name);

}  // namespace tutti::softgpu::ptx
