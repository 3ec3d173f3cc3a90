// Instructions on bits, with positions and lengths beyond the word: the expected values come from loops over bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "softgpu/ptx/cases.h"

namespace tutti::softgpu::test {
namespace {

const std::vector<std::uint32_t> kAmounts = {0, 1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 0xffffffffu};

template <typename T>
constexpr std::uint32_t kBits = sizeof(T) * 8;

template <typename T>
std::string ofBits(char kind) {
  return kind + std::to_string(kBits<T>);
}

template <typename T>
void addLogic(std::vector<Instruction>& table) {
  const std::string b = ofBits<T>('b'), one = b + " = " + b, two = one + " " + b;
  const auto values = edges<T>();
  table.push_back({"and." + b + " %d, %a, %b;", two, pairs(values, [](T x, T y) { return x & y; })});
  table.push_back({"or." + b + " %d, %a, %b;", two, pairs(values, [](T x, T y) { return x | y; })});
  table.push_back({"xor." + b + " %d, %a, %b;", two, pairs(values, [](T x, T y) { return x ^ y; })});
  table.push_back({"not." + b + " %d, %a;", one, singles(values, [](T x) { return ~x; })});
  table.push_back({"cnot." + b + " %d, %a;", one, singles(values, [](T x) { return x == 0 ? 1 : 0; })});
}

TEST(PtxBits, LogicWorksOnEveryBit) {
  std::vector<Instruction> table;
  addLogic<std::uint16_t>(table);
  addLogic<std::uint32_t>(table);
  addLogic<std::uint64_t>(table);
  expectResults(table);
}

TEST(PtxBits, LogicOfPredicates) {
  const std::vector<std::uint32_t> both = {0, 1};
  expectResults({
      {"and.pred %d, %a, %b;", "pred = pred pred", pairs(both, [](bool a, bool b) { return a && b; })},
      {"or.pred %d, %a, %b;", "pred = pred pred", pairs(both, [](bool a, bool b) { return a || b; })},
      {"xor.pred %d, %a, %b;", "pred = pred pred", pairs(both, [](bool a, bool b) { return a != b; })},
      {"not.pred %d, %a;", "pred = pred", singles(both, [](bool a) { return !a; })},
      {"mov.pred %d, %a;", "pred = pred", singles(both, [](bool a) { return a; })},
  });
}

template <typename T>
void addShifts(std::vector<Instruction>& table) {
  using S = std::make_signed_t<T>;
  const std::string n = std::to_string(kBits<T>);
  const auto row = [&](const std::string& name, char kind, std::vector<Case> cases) {
    const std::string type = kind + n;
    table.push_back({name + "." + type + " %d, %a, %b;", type + " = " + type + " u32", std::move(cases)});
  };
  row("shl", 'b',
      pairs(edges<T>(), kAmounts, [](T a, std::uint32_t by) { return by >= kBits<T> ? T{0} : T(a << by); }));
  const auto right = [](T a, std::uint32_t by) { return by >= kBits<T> ? T{0} : T(a >> by); };
  row("shr", 'b', pairs(edges<T>(), kAmounts, right));
  row("shr", 'u', pairs(edges<T>(), kAmounts, right));
  row("shr", 's',
      pairs(edges<S>(), kAmounts, [](S a, std::uint32_t by) { return S(a >> std::min(by, kBits<T> - 1)); }));
}

TEST(PtxBits, ShiftsBeyondTheWidthGiveZeroOrTheSign) {
  std::vector<Instruction> table;
  addShifts<std::uint16_t>(table);
  addShifts<std::uint32_t>(table);
  addShifts<std::uint64_t>(table);
  expectResults(table);
}

TEST(PtxBits, FunnelShiftsClampOrWrapTheirAmount) {
  std::vector<Instruction> table;
  for (const bool left : {true, false}) {
    for (const bool wrap : {true, false}) {
      std::vector<Case> cases;
      for (const std::uint32_t a : {0x12345678u, 0xffffffffu, 0u}) {
        for (const std::uint32_t b : {0x9abcdef0u, 0u, 0xffffffffu}) {
          for (const std::uint32_t c : kAmounts) {
            const std::uint32_t amount = wrap ? c & 31 : std::min(c, 32u);
            const std::uint64_t whole = std::uint64_t{b} << 32 | a;
            cases.push_back({{a, b, c},
                             left ? static_cast<std::uint32_t>(UnsignedWide{whole} << amount >> 32)
                                  : static_cast<std::uint32_t>(whole >> amount)});
          }
        }
      }
      table.push_back({std::string("shf.") + (left ? "l." : "r.") + (wrap ? "wrap" : "clamp") + ".b32 %d, %a, %b, %c;",
                       "b32 = b32 b32 u32", cases});
    }
  }
  expectResults(table);
}

/// The highest bit of `value` that differs from its sign, or -1.
template <typename T>
int highestBit(T value) {
  for (int i = static_cast<int>(kBits<T>) - 1; i >= 0; --i)
    if ((value >> i & 1) != (value < 0 ? 1 : 0)) return i;
  return -1;
}

template <typename T>
void addFind(std::vector<Instruction>& table) {
  const std::string type = ofBits<T>(std::is_signed_v<T> ? 's' : 'u');
  table.push_back({"bfind." + type + " %d, %a;", "u32 = " + type, singles(edges<T>(), highestBit<T>)});
  table.push_back({"bfind.shiftamt." + type + " %d, %a;", "u32 = " + type, singles(edges<T>(), [](T a) {
                     const int found = highestBit(a);
                     return found < 0 ? found : static_cast<int>(kBits<T>) - 1 - found;
                   })});
}

template <typename T>
T reversed(T value) {
  T result = 0;
  for (std::uint32_t i = 0; i < kBits<T>; ++i) result = static_cast<T>(result << 1 | (value >> i & 1));
  return result;
}

template <typename T>
void addCounts(std::vector<Instruction>& table) {
  const std::string b = ofBits<T>('b');
  table.push_back({"popc." + b + " %d, %a;", "u32 = " + b, singles(edges<T>(), [](T a) { return std::popcount(a); })});
  table.push_back(
      {"clz." + b + " %d, %a;", "u32 = " + b, singles(edges<T>(), [](T a) { return std::countl_zero(a); })});
  table.push_back({"brev." + b + " %d, %a;", b + " = " + b, singles(edges<T>(), reversed<T>)});
}

TEST(PtxBits, AreCountedFoundAndReversed) {
  std::vector<Instruction> table;
  addCounts<std::uint32_t>(table);
  addCounts<std::uint64_t>(table);
  addFind<std::uint32_t>(table);
  addFind<std::int32_t>(table);
  addFind<std::uint64_t>(table);
  addFind<std::int64_t>(table);
  expectResults(table);
}

int nthSet(std::uint32_t mask, int base, int offset) {
  if (offset == 0) return (mask >> base & 1) != 0 ? base : -1;
  int left = std::abs(offset);
  for (int i = base; i >= 0 && i<32; i += offset> 0 ? 1 : -1)
    if ((mask >> i & 1) != 0 && --left == 0) return i;
  return -1;
}

TEST(PtxBits, TheNthSetIsFoundInBothDirections) {
  std::vector<Case> cases;
  for (const std::uint32_t mask : {0u, 1u, 0x80000000u, 0xaaaaaaaau, 0x00f00f00u, 0xffffffffu})
    for (const int base : {0, 1, 8, 15, 31})
      for (const int offset : {0, 1, -1, 2, -2, 5, -5, 32, -32, 33})
        cases.push_back({{mask, base, offset}, nthSet(mask, base, offset)});
  expectResults({{"fns.b32 %d, %a, %b, %c;", "b32 = b32 b32 s32", cases}});
}

/// Bit `i` of the field is `value`'s as long as it lies in field and word, else the field's highest bit or 0.
template <typename T>
T extracted(T value, std::uint32_t position, std::uint32_t length) {
  using U = std::make_unsigned_t<T>;
  const std::uint32_t top = kBits<T> - 1;
  const auto bit = [&](std::uint32_t i) { return static_cast<U>(static_cast<U>(value) >> i & 1); };
  const U fill = std::is_signed_v<T> && length != 0 ? bit(std::min(position + length - 1, top)) : U{0};
  U result = 0;
  for (std::uint32_t i = 0; i <= top; ++i)
    result = static_cast<U>(result | (i < length && position + i <= top ? bit(position + i) : fill) << i);
  return static_cast<T>(result);
}

template <typename T>
T inserted(T field, T into, std::uint32_t position, std::uint32_t length) {
  for (std::uint32_t i = 0; i < length && position + i < kBits<T>; ++i) {
    const T mask = T{1} << (position + i);
    into = (into & ~mask) | ((field >> i & 1) != 0 ? mask : 0);
  }
  return into;
}

template <typename T>
void addExtract(std::vector<Instruction>& table) {
  const std::string type = ofBits<T>(std::is_signed_v<T> ? 's' : 'u');
  std::vector<Case> cases;
  for (const T a : edges<T>())
    for (const std::uint32_t b : kAmounts)
      for (const std::uint32_t c : kAmounts) cases.push_back({{a, b, c}, extracted(a, b & 255, c & 255)});
  table.push_back({"bfe." + type + " %d, %a, %b, %c;", type + " = " + type + " u32 u32", cases});
}

template <typename T>
void addInsert(std::vector<Instruction>& table) {
  const std::string b = ofBits<T>('b');
  std::vector<Case> cases;
  for (const T field : {T(-1), T(0), T(0x5a5a3c3cc3c3a5a5ull)})
    for (const T into : {T(-1), T(0), T(0x123456789abcdef0ull)})
      for (const std::uint32_t position : kAmounts)
        for (const std::uint32_t length : kAmounts)
          cases.push_back({{field, into, position, length}, inserted(field, into, position & 255, length & 255)});
  table.push_back({"bfi." + b + " %d, %a, %b, %c, %f;", b + " = " + b + " " + b + " u32 u32", cases});
}

TEST(PtxBits, FieldsEndWithTheWord) {
  std::vector<Instruction> table;
  addExtract<std::uint32_t>(table);
  addExtract<std::int32_t>(table);
  addExtract<std::uint64_t>(table);
  addExtract<std::int64_t>(table);
  addInsert<std::uint32_t>(table);
  addInsert<std::uint64_t>(table);
  expectResults(table);
}

std::uint32_t maskOf(std::uint32_t from, std::uint32_t length) {
  std::uint32_t mask = 0;
  for (std::uint32_t i = from; i < 32 && i - from < length; ++i) mask |= 1u << i;
  return mask;
}

TEST(PtxBits, MasksClampOrWrapPositionAndLength) {
  const auto wrapped = [](std::uint32_t a, std::uint32_t b) { return maskOf(a & 31, b & 31); };
  expectResults({
      {"bmsk.clamp.b32 %d, %a, %b;", "b32 = b32 b32", pairs(kAmounts, maskOf)},
      {"bmsk.wrap.b32 %d, %a, %b;", "b32 = b32 b32", pairs(kAmounts, wrapped)},
  });
}

template <bool kSigned>
std::uint32_t extended(std::uint32_t value, std::uint32_t bits) {
  if (bits == 0) return 0;
  if (bits >= 32) return value;
  const std::uint32_t low = value & ((1u << bits) - 1);
  return kSigned && (low >> (bits - 1) & 1) != 0 ? low | ~0u << bits : low;
}

TEST(PtxBits, ExtensionClampsOrWrapsItsWidth) {
  const auto values = edges<std::uint32_t>();
  const auto wrapped = [](auto function) {
    return [=](std::uint32_t a, std::uint32_t b) { return function(a, b & 31); };
  };
  expectResults({
      {"szext.clamp.u32 %d, %a, %b;", "b32 = b32 b32", pairs(values, kAmounts, extended<false>)},
      {"szext.clamp.s32 %d, %a, %b;", "b32 = b32 b32", pairs(values, kAmounts, extended<true>)},
      {"szext.wrap.u32 %d, %a, %b;", "b32 = b32 b32", pairs(values, kAmounts, wrapped(extended<false>))},
      {"szext.wrap.s32 %d, %a, %b;", "b32 = b32 b32", pairs(values, kAmounts, wrapped(extended<true>))},
  });
}

TEST(PtxBits, AnyFunctionOfThreeOperandsByItsTable) {
  std::vector<Instruction> table;
  const std::vector<std::uint32_t> values = {0xaaaaaaaau, 0xccccccccu, 0xf0f0f0f0u, 0x12345678u};
  for (const std::uint32_t function : {0x00u, 0x01u, 0x1au, 0x80u, 0x96u, 0xcau, 0xe8u, 0xf0u, 0xfeu, 0xffu}) {
    table.push_back({"lop3.b32 %d, %a, %b, %c, " + std::to_string(function) + ";", "b32 = b32 b32 b32",
                     triples(values, values, [=](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
                       std::uint32_t result = 0;
                       for (int i = 0; i < 32; ++i)
                         result |= (function >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i;
                       return result;
                     })});
  }
  table.push_back({"lop3.or.b32 %d|%e, %a, %b, %c, 0x80, %f;",
                   "b32 pred = b32 b32 b32 pred",
                   {{{7, 3, 2, 0}, {2, 1}}, {{4, 3, 2, 0}, {0, 0}}, {{4, 3, 2, 1}, {0, 1}}}});
  table.push_back({"lop3.and.b32 %d|%e, %a, %b, %c, 0x80, %f;",
                   "b32 pred = b32 b32 b32 pred",
                   {{{7, 3, 2, 0}, {2, 0}}, {{7, 3, 2, 1}, {2, 1}}, {{4, 3, 2, 1}, {0, 0}}}});
  expectResults(table);
}

}  // namespace
}  // namespace tutti::softgpu::test
