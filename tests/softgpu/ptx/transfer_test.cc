// Loads, stores and parameters of every width, order and space: what was stored is what is loaded.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "softgpu/ptx/cases.h"
#include "softgpu/ptx/run.h"

namespace tutti::softgpu::test {
namespace {

const Words kInputs = {0x8122334455667788u, 0xf1e2d3c4b5a69788u, 0x0102030405060708u, 0x99aabbccddeeff00u};

/// `u32` of `v4.u32`, and how many elements there are.
struct Elements {
  std::string type;
  unsigned count = 1;
  unsigned bits() const { return static_cast<unsigned>(std::stoul(type.substr(1))); }
  /// Registers have at least 16 bits.
  std::string registerType() const { return bits() == 8 ? "b16" : type; }
};

Elements elementsOf(const std::string& form) {
  Elements elements{form.substr(form.rfind('.') + 1)};
  for (const unsigned n : {2u, 4u}) {
    if (form.find(".v" + std::to_string(n) + ".") != std::string::npos) elements.count = n;
  }
  return elements;
}

/// `%x0`, or `{%x0, %x1}`.
std::string group(const std::string& name, unsigned count) {
  std::string list;
  for (unsigned i = 0; i < count; ++i) list += (i == 0 ? "%" : ", %") + name + std::to_string(i);
  return count == 1 ? list : "{" + list + "}";
}

/// Registers %x… with the inputs, `moves`, which puts them into %y…, and those into the outputs.
std::string bodyOf(const Elements& elements, const std::string& moves) {
  const std::string bits = std::to_string(elements.bits());
  std::string body = ".reg ." + elements.registerType() + " %x<4>, %y<4>;\n.reg .u64 %p;\n";
  for (unsigned i = 0; i < elements.count; ++i) {
    body += "ld.global.b" + bits + " %x" + std::to_string(i) + ", [%in+" + std::to_string(8 * i) + "];\n";
  }
  body += moves;
  for (unsigned i = 0; i < elements.count; ++i) {
    body += "st.global.b" + bits + " [%out+" + std::to_string(8 * i) + "], %y" + std::to_string(i) + ";\n";
  }
  return body;
}

void expectMoved(const std::string& what, const Elements& elements, const std::string& moves,
                 const std::string& before) {
  const auto outputs = runBody(bodyOf(elements, moves), 1, kInputs, elements.count, before);
  ASSERT_EQ(outputs.size(), elements.count) << what;
  const std::uint64_t mask = elements.bits() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << elements.bits()) - 1;
  for (unsigned i = 0; i < elements.count; ++i) {
    EXPECT_EQ(outputs[i], (kInputs[i].bits & mask) | (Program::kUntouched & ~mask)) << what << ", element " << i;
  }
}

struct Pair {
  std::string store;
  std::string load;
};

/// Names of places in each space; of no space: a generic address of global memory.
void expectPairMoves(const Pair& pair) {
  const Elements elements = elementsOf(pair.store);
  const bool isShared = pair.store.find(".shared") != std::string::npos;
  const bool isLocal = pair.store.find(".local") != std::string::npos;
  const std::string place = isShared ? "[inBlock]" : isLocal ? "[own]" : "[%p]";
  expectMoved(pair.store + ", " + pair.load, elements,
              (isLocal ? ".local .align 16 .b8 own[64];\n" : "") + std::string("mov.u64 %p, room;\n") + pair.store +
                  " " + place + ", " + group("x", elements.count) + ";\n" + pair.load + " " +
                  group("y", elements.count) + ", " + place + ";\n",
              ".global .align 16 .b8 room[64];\n.shared .align 16 .b8 inBlock[64];\n");
}

TEST(PtxTransfer, GenericAddressesTakeEveryWidthAndOrder) {
  for (const std::string order : {"", "volatile.", "relaxed.sys."}) {
    for (const std::string type : {"u8", "u16", "u32", "u64", "f32", "f64", "v2.u32", "v2.u64", "v4.u32"}) {
      expectPairMoves({"st." + order + type, "ld." + order + type});
    }
  }
  for (const std::string type : {"u32", "u64"}) expectPairMoves({"st.release.sys." + type, "ld.acquire.sys." + type});
}

TEST(PtxTransfer, SpacesThatAreNamedTakeEveryWidth) {
  for (const std::string type : {"u8", "u16", "u32", "u64", "f32", "f64", "v2.u32", "v2.u64", "v4.u32", "v2.f64"}) {
    for (const std::string space : {"global.", "shared.", "local."}) {
      expectPairMoves({"st." + space + type, "ld." + space + type});
    }
    expectPairMoves({"st.volatile.global." + type, "ld.volatile.global." + type});
    expectPairMoves({"st.volatile.shared." + type, "ld.volatile.shared." + type});
    expectPairMoves({"st.global." + type, "ld.global.nc." + type});
  }
}

TEST(PtxTransfer, ParametersOfFunctionsTakeEveryWidth) {
  for (const std::string type : {"b8", "u8", "s8", "b16", "u16", "b32", "u32", "f32", "b64", "u64", "f64"}) {
    for (const unsigned count : {1u, 2u, 4u}) {
      const Elements elements{type, count};
      if (elements.bits() * count > 128) continue;
      const std::string form = "param." + (count == 1 ? "" : "v" + std::to_string(count) + ".") + type;
      const std::string function =
          ".func (.param .align 16 .b8 result[16]) pass(.param .align 16 .b8 given[16]) {\n"
          ".reg ." +
          elements.registerType() + " %x<4>;\nld." + form + " " + group("x", count) + ", [given];\nst." + form +
          " [result], " + group("x", count) + ";\nret;\n}\n";
      expectMoved(form, elements,
                  "{\n.param .align 16 .b8 a[16];\n.param .align 16 .b8 r[16];\nst." + form + " [a], " +
                      group("x", count) + ";\ncall (r), pass, (a);\nld." + form + " " + group("y", count) +
                      ", [r];\n}\n",
                  function);
    }
  }
}

TEST(PtxTransfer, AKernelsParametersHaveAddresses) {
  const auto outputs = runBody(
      ".reg .u64 %p, %q;\nmov.b64 %p, inputs;\ncvta.param.u64 %q, %p;\nld.u64 %p, [%q];\n"
      "sub.u64 %p, %p, %in;\nst.global.u64 [%out], %p;",
      1, {}, 1);
  EXPECT_EQ(outputs, std::vector<std::uint64_t>{0});
}

TEST(PtxTransfer, RegistersOfSixteenBitsAreMovedAndChosen) {
  expectResults({
      {"mov.u16 %d, %a;", "u16 = u16", {{0xfedc, 0xfedc}}},
      {"mov.s16 %d, %a;", "s16 = s16", {{-2, -2}}},
      {"selp.u16 %d, %a, %b, %c;", "u16 = u16 u16 pred", {{{1, 2, 1}, 1}, {{1, 2, 0}, 2}}},
      {"selp.s16 %d, %a, %b, %c;", "s16 = s16 s16 pred", {{{-1, 2, 1}, -1}, {{-1, 2, 0}, 2}}},
  });
}

}  // namespace
}  // namespace tutti::softgpu::test
