#include "softgpu/ptx/text/declarations.h"

#include "softgpu/ptx/text/constants.h"

#include <string>
#include <utility>

namespace tutti::softgpu::ptx {
namespace {

/// Refuses counts that no machine has room for, before anything is allocated for them.
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 40;

bool acceptSpace(Words& words, Space* space) {
  static constexpr std::pair<std::string_view, Space> kSpaces[] = {
      {"reg", Space::Register},  {"global", Space::Global}, {"const", Space::Constant},
      {"shared", Space::Shared}, {"local", Space::Local},   {"param", Space::Param},
  };
  for (const auto& [name, meant] : kSpaces) {
    if (!words.acceptDirective(name)) continue;
    *space = meant;
    return true;
  }
  return false;
}

void parseAttribute(Words& words) {
  words.expectSign('(');
  while (!words.atEnd() && !words.acceptSign(')')) words.take();
}

/// `.ptr .global .align 16`: what a parameter points to.
void skipPointee(Words& words) {
  Space space = Space::Generic;
  while (acceptSpace(words, &space)) {
  }
  if (words.acceptDirective("align")) words.expectInteger();
}

/// Space, alignment, vector length and type, in the order in which they stand.
Variable parseKind(Words& words) {
  Variable variable;
  variable.line = words.line();
  if (!acceptSpace(words, &variable.space)) words.fail("a state space is missing");
  bool typed = false;
  std::uint32_t align = 0;
  while (words.peek().kind == Token::Kind::Directive) {
    if (words.acceptDirective("align")) {
      align = static_cast<std::uint32_t>(words.expectInteger());
    } else if (words.acceptDirective("v2")) {
      variable.vector = 2;
    } else if (words.acceptDirective("v4")) {
      variable.vector = 4;
    } else if (words.acceptDirective("ptr")) {
      skipPointee(words);
    } else if (words.acceptDirective("attribute")) {
      parseAttribute(words);
    } else if (const auto type = typeOf(words.peek().text)) {
      words.take();
      variable.type = *type;
      typed = true;
    } else {
      break;
    }
  }
  if (!typed) words.fail("a type is missing");
  const std::uint32_t natural = variable.vector * (variable.type.bits == 1 ? 1 : variable.type.bytes());
  variable.align = align != 0 ? align : natural;
  if ((variable.align & (variable.align - 1)) != 0) words.fail("an alignment is no power of two");
  return variable;
}

std::uint64_t bitsFor(const NumberOperand& number, Type type) {
  if (number.floatBits == 0 || number.floatBits == type.bits || !type.isFloat()) return number.bits;
  const double value = number.floatBits == 64 ? __builtin_bit_cast(double, number.bits)
                                              : __builtin_bit_cast(float, static_cast<std::uint32_t>(number.bits));
  if (type.bits == 64) return __builtin_bit_cast(std::uint64_t, value);
  return __builtin_bit_cast(std::uint32_t, static_cast<float>(value));
}

/// `12`, `-1`, `0f3f800000`, `symbol`, `symbol+4`, `generic(symbol)`.
Initial parseInitial(Words& words, const Variable& variable) {
  Initial part;
  part.bytes = variable.type.bytes();
  if (words.peek().kind != Token::Kind::Name) {
    part.value = bitsFor(parseConstant(words), variable.type);
    return part;
  }
  part.symbol = words.expectName();
  if (part.symbol == "generic" && words.acceptSign('(')) {
    part.symbol = words.expectName();
    words.expectSign(')');
  }
  if (words.acceptSign('+')) part.value = static_cast<std::uint64_t>(words.expectInteger());
  if (part.bytes != 8) words.fail("an address of less than 64 bits as initial value is not supported");
  return part;
}

/// The elements in `{…}`, nested or not; `at` is the offset of the next one.
void parseInitials(Words& words, Variable& variable, std::uint64_t* at) {
  if (!words.acceptSign('{')) {
    Initial part = parseInitial(words, variable);
    part.offset = *at;
    *at += part.bytes;
    if (part.value != 0 || !part.symbol.empty()) variable.initial.push_back(std::move(part));
    return;
  }
  if (words.acceptSign('}')) return;
  do parseInitials(words, variable, at);
  while (words.acceptSign(','));
  words.expectSign('}');
}

void parseDimensions(Words& words, Variable& variable) {
  while (words.acceptSign('[')) {
    if (words.acceptSign(']')) {
      variable.count = 0;
      continue;
    }
    const auto size = static_cast<std::uint64_t>(parseIntegerConstant(words));
    if (size > kMostElements || (variable.count *= size) > kMostElements) words.fail("an array is too large");
    words.expectSign(']');
  }
}

/// `%r<10>` declares %r0 to %r9.
bool parseRange(Words& words, const Variable& variable, std::vector<Variable>& all) {
  if (!words.acceptSign('<')) return false;
  const std::int64_t count = words.expectInteger();
  if (count < 0 || count > 10'000'000) words.fail("a number of registers makes no sense");
  words.expectSign('>');
  for (std::int64_t i = 0; i < count; ++i) {
    all.push_back(variable);
    all.back().name += std::to_string(i);
  }
  return true;
}

}  // namespace

Linkage parseLinkage(Words& words) {
  Linkage linkage;
  while (words.peek().kind == Token::Kind::Directive) {
    if (words.acceptDirective("extern")) {
      linkage.external = true;
    } else if (!words.acceptDirective("visible") && !words.acceptDirective("weak") &&
               !words.acceptDirective("common")) {
      break;
    }
  }
  return linkage;
}

std::vector<Variable> parseDeclaration(Words& words, Linkage linkage) {
  const Variable kind = parseKind(words);
  std::vector<Variable> all;
  do {
    Variable variable = kind;
    variable.name = words.expectName();
    variable.external = linkage.external;
    if (parseRange(words, variable, all)) continue;
    parseDimensions(words, variable);
    if (words.acceptSign('=')) {
      std::uint64_t bytes = 0;
      parseInitials(words, variable, &bytes);
      if (variable.count == 0) variable.count = bytes / variable.type.bytes();
      if (bytes > variable.bytes()) words.fail("there are more initial values than elements");
    }
    all.push_back(std::move(variable));
  } while (words.acceptSign(','));
  words.expectSign(';');
  return all;
}

std::vector<Variable> parseParameters(Words& words) {
  words.expectSign('(');
  std::vector<Variable> all;
  if (words.acceptSign(')')) return all;
  do {
    Variable variable = parseKind(words);
    variable.name = words.expectName();
    parseDimensions(words, variable);
    all.push_back(std::move(variable));
  } while (words.acceptSign(','));
  words.expectSign(')');
  return all;
}

}  // namespace tutti::softgpu::ptx
