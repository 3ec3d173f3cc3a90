// Permutations of bytes, dot products of bytes, and chains of carries.
#include <gtest/gtest.h>

#include <string>

#include "softgpu/ptx/cases.h"

namespace tutti::softgpu::test {
namespace {

const std::uint32_t kLow = 0x83624120u, kHigh = 0xf7c5a496u;  ///< bytes with and without a sign, all different

std::uint32_t byteOf(std::uint32_t selector) {
  const std::uint64_t both = std::uint64_t{kHigh} << 32 | kLow;
  const auto byte = static_cast<std::uint32_t>(both >> 8 * (selector & 7) & 0xff);
  if ((selector & 8) == 0) return byte;
  return (byte & 0x80) != 0 ? 0xff : 0;
}

std::uint32_t bytesOf(std::uint32_t b3, std::uint32_t b2, std::uint32_t b1, std::uint32_t b0) {
  return byteOf(b3) << 24 | byteOf(b2) << 16 | byteOf(b1) << 8 | byteOf(b0);
}

TEST(PtxBytes, PermutationsPickEachByteOrItsSign) {
  std::vector<Case> cases;
  for (const std::uint32_t selectors : {0x3210u, 0x7654u, 0x0123u, 0x5410u, 0xfedcu, 0xba98u, 0x8f07u, 0xffff3210u}) {
    cases.push_back({{kLow, kHigh, selectors},
                     bytesOf(selectors >> 12 & 15, selectors >> 8 & 15, selectors >> 4 & 15, selectors & 15)});
  }
  expectResults({{"prmt.b32 %d, %a, %b, %c;", "b32 = b32 b32 b32", cases}});
}

TEST(PtxBytes, PermutationModesFollowTheTableOfTheIsa) {
  struct Mode {
    const char* name;
    std::uint32_t bytes[4][4];  ///< of each selector, from the highest
  };
  const Mode modes[] = {
      {"f4e", {{3, 2, 1, 0}, {4, 3, 2, 1}, {5, 4, 3, 2}, {6, 5, 4, 3}}},
      {"b4e", {{5, 6, 7, 0}, {6, 7, 0, 1}, {7, 0, 1, 2}, {0, 1, 2, 3}}},
      {"rc8", {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}},
      {"ecl", {{3, 2, 1, 0}, {3, 2, 1, 1}, {3, 2, 2, 2}, {3, 3, 3, 3}}},
      {"ecr", {{0, 0, 0, 0}, {1, 1, 1, 0}, {2, 2, 1, 0}, {3, 2, 1, 0}}},
      {"rc16", {{1, 0, 1, 0}, {3, 2, 3, 2}, {1, 0, 1, 0}, {3, 2, 3, 2}}},
  };
  std::vector<Instruction> table;
  for (const Mode& mode : modes) {
    std::vector<Case> cases;
    for (std::uint32_t i = 0; i < 8; ++i) {  // only the two lowest bits count
      const auto& b = mode.bytes[i & 3];
      cases.push_back({{kLow, kHigh, i}, bytesOf(b[0], b[1], b[2], b[3])});
    }
    table.push_back({std::string("prmt.b32.") + mode.name + " %d, %a, %b, %c;", "b32 = b32 b32 b32", cases});
  }
  expectResults(table);
}

int part(std::uint32_t word, int index, int bits, bool isSigned) {
  const int value = static_cast<int>(word >> index * bits & ((1u << bits) - 1));
  return isSigned && value >= 1 << (bits - 1) ? value - (1 << bits) : value;
}

TEST(PtxBytes, DotProductsExtendEachOperandByItsOwnSign) {
  std::vector<Instruction> table;
  for (const bool signedA : {false, true}) {
    for (const bool signedB : {false, true}) {
      const std::string types = std::string(signedA ? ".s32" : ".u32") + (signedB ? ".s32" : ".u32");
      const auto dot = [=](int count, int bitsA, int firstB) {
        return triples(std::vector<std::uint32_t>{0, 0x01020304, 0xffffffff, 0x80808080, kLow, kHigh},
                       std::vector<std::uint32_t>{0, 100, 0xffffffff},
                       [=](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
                         for (int i = 0; i < count; ++i) {
                           const int product = part(a, i, bitsA, signedA) * part(b, firstB + i, 8, signedB);
                           c += static_cast<std::uint32_t>(product);
                         }
                         return c;
                       });
      };
      table.push_back({"dp4a" + types + " %d, %a, %b, %c;", "b32 = b32 b32 b32", dot(4, 8, 0)});
      table.push_back({"dp2a.lo" + types + " %d, %a, %b, %c;", "b32 = b32 b32 b32", dot(2, 16, 0)});
      table.push_back({"dp2a.hi" + types + " %d, %a, %b, %c;", "b32 = b32 b32 b32", dot(2, 16, 2)});
    }
  }
  expectResults(table);
}

const std::vector<std::uint32_t> kWords = {0, 1, 0x7fffffff, 0x80000000u, 0xfffffffeu, 0xffffffffu};

std::uint64_t joined(std::uint32_t high, std::uint32_t low) {
  return std::uint64_t{high} << 32 | low;
}

/// Cases of two numbers of 64 bits in halves.
template <typename F>
std::vector<Case> halves(F expected) {
  std::vector<Case> cases;
  for (const auto a : kWords)
    for (const auto b : kWords)
      for (const auto c : kWords)
        for (const auto d : kWords) {
          const std::uint64_t result = expected(joined(b, a), joined(d, c));
          cases.push_back({{a, b, c, d}, {static_cast<std::uint32_t>(result), result >> 32}});
        }
  return cases;
}

TEST(PtxCarry, GoesFromSumToSum) {
  const auto sum = halves([](std::uint64_t a, std::uint64_t b) { return a + b; });
  const auto difference = halves([](std::uint64_t a, std::uint64_t b) { return a - b; });
  const char* const types = "b32 b32 = b32 b32 b32 b32";
  expectResults({
      {"add.cc.u32 %d, %a, %c; addc.u32 %e, %b, %f;", types, sum},
      {"add.cc.s32 %d, %a, %c; addc.s32 %e, %b, %f;", types, sum},
      {"sub.cc.u32 %d, %a, %c; subc.u32 %e, %b, %f;", types, difference},
      {"sub.cc.s32 %d, %a, %c; subc.s32 %e, %b, %f;", types, difference},
  });
}

TEST(PtxCarry, GoesThroughAMiddleThatIsAllOnes) {
  const char* const types = "b32 b32 b32 = b32 b32 b32";
  expectResults({
      {"add.cc.u32 %d, %a, 1; addc.cc.u32 %e, %b, 0; addc.u32 %g, %c, 0;",
       types,
       {{{-1, -1, 5}, {0, 0, 6}}, {{-1, 3, 5}, {0, 4, 5}}, {{7, -1, 5}, {8, -1, 5}}}},
      {"sub.cc.u32 %d, %a, 1; subc.cc.u32 %e, %b, 0; subc.u32 %g, %c, 0;",
       types,
       {{{0, 0, 5}, {-1, -1, 4}}, {{0, 3, 5}, {-1, 2, 5}}, {{7, 0, 5}, {6, 0, 5}}}},
      {"add.cc.u32 %d, %a, %b; addc.cc.u32 %e, %c, -1; addc.u32 %g, 0, 0;",
       types,
       {{{-1, 1, 0}, {0, 0, 1}}, {{1, 1, 0}, {2, -1, 0}}, {{-1, -1, -1}, {-2, -1, 1}}}},
  });
}

TEST(PtxCarry, GoesThrough64Bits) {
  const auto values = edges<std::uint64_t>();
  std::vector<Case> sums, differences;
  for (const auto a : values)
    for (const auto b : values) {
      sums.push_back({{a, b}, {a + b, a + b < a ? 1 : 0}});
      differences.push_back({{a, b}, {a - b, a < b ? -1 : 0}});
    }
  expectResults({
      {"add.cc.u64 %d, %a, %b; addc.u64 %e, 0, 0;", "u64 u64 = u64 u64", sums},
      {"sub.cc.u64 %d, %a, %b; subc.u64 %e, 0, 0;", "u64 u64 = u64 u64", differences},
      {"add.cc.s64 %d, %a, %b; addc.s64 %e, 0, 0;", "s64 s64 = s64 s64", sums},
  });
}

TEST(PtxCarry, GoesThroughProductsAndSums) {
  std::vector<Case> low, both;
  for (const auto a : kWords)
    for (const auto b : kWords)
      for (const auto c : kWords) {
        const auto sum = std::uint64_t{a * b} + c;
        low.push_back({{a, b, c}, {static_cast<std::uint32_t>(sum), sum >> 32}});
        const std::uint64_t product = std::uint64_t{a} * b + joined(c, c);
        both.push_back({{a, b, c, c}, {static_cast<std::uint32_t>(product), product >> 32}});
      }
  expectResults({
      {"mad.lo.cc.u32 %d, %a, %b, %c; addc.u32 %e, 0, 0;", "u32 u32 = u32 u32 u32", low},
      {"mad.lo.cc.u32 %d, %a, %b, %c; madc.hi.u32 %e, %a, %b, %f;", "u32 u32 = u32 u32 u32 u32", both},
      {"mad.lo.cc.u32 %d, %a, %b, %c; madc.hi.cc.u32 %e, %a, %b, %f;", "u32 u32 = u32 u32 u32 u32", both},
  });
}

TEST(PtxCarry, IsTakenByProductsAndGivenByThem) {
  const char* const types = "u32 u32 = u32 u32 u32";
  expectResults({
      {"add.cc.u32 %d, %c, %c; madc.lo.u32 %e, %a, %b, %c;",
       types,
       {{{3, 5, 0x80000000u}, {0, 0x80000010u}}, {{3, 5, 1}, {2, 16}}}},
      {"add.cc.u32 %d, -1, 1; madc.lo.cc.u32 %d, %a, %b, %c; addc.u32 %e, 0, 0;",
       types,
       {{{1, 1, 0xfffffffeu}, {0, 1}}, {{1, 1, 0xfffffffdu}, {-1, 0}}, {{0, 0, -1}, {0, 1}}}},
      {"add.cc.u32 %d, -1, 1; madc.hi.cc.u32 %d, %a, %b, %c; addc.u32 %e, 0, 0;",
       types,
       {{{0x80000000u, 2, 0xfffffffeu}, {0, 1}}, {{0x80000000u, 2, 3}, {5, 0}}}},
      {"mad.hi.cc.u32 %d, %a, %b, %c; addc.u32 %e, 0, 0;",
       types,
       {{{0x80000000u, 4, 0xfffffffeu}, {0, 1}}, {{0x80000000u, 4, 1}, {3, 0}}}},
  });
}

TEST(PtxCarry, IsLeftAloneByOtherInstructions) {
  expectResults({{"add.cc.u32 %d, %a, %b; mul.lo.u32 %g, %a, 3; add.u32 %g, %g, -1; addc.u32 %e, %g, 0;",
                  "u32 u32 u32 = u32 u32",
                  {{{-1, 1}, {0, -3, -4}}, {{1, 1}, {2, 2, 2}}}}});
}

}  // namespace
}  // namespace tutti::softgpu::test
