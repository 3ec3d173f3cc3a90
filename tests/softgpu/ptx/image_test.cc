// Images of text; what cannot be read or translated is told with its place.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>

#include "softgpu/ptx/run.h"

namespace tutti::softgpu::test {
namespace {

constexpr PtxOptions kOptions = {90, nullptr, false};

/// Text whose kernel holds `code` in line 4 + 1.
std::string withCode(const std::string& code) {
  return moduleHead() + ".visible .entry bad(.param .u64 p) {\n" + code + "\nret;\n}\n";
}

/// `code` in line 6 of a module is refused with `word`, and harms no other kernel.
void expectRefused(const std::string& declaration, const std::string& code, const std::string& word) {
  const std::string text = moduleHead() + declaration + "\n.visible .entry bad(.param .u64 p) {\n" + code +
                           "\nret;\n}\n.visible .entry good() { ret; }\n";
  Program program(text.c_str());
  ASSERT_NE(program.get(), nullptr) << code << ": " << program.why();
  EXPECT_EQ(program.kernel("bad"), nullptr) << code;
  EXPECT_TRUE(names(program.why(), "bad")) << program.why();
  EXPECT_TRUE(names(program.why(), word)) << program.why();
  EXPECT_TRUE(names(program.why(), "6")) << "line 6: " << program.why();
  EXPECT_NE(program.kernel("good"), nullptr) << "other kernels are not harmed: " << program.why();
}

TEST(PtxImage, WhatIsNotTranslatedIsNamedWithItsKernelAndLine) {
  expectRefused("//",
                "{ .reg .b32 %r<8>; .reg .f32 %f<8>; mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
                " {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f4, %f5, %f6, %f7}; }",
                "mma");
  expectRefused("//",
                "{ .reg .b32 %r<9>; .reg .u64 %l; wmma.load.a.sync.aligned.row.m16n16k16.f16"
                " {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%l]; }",
                "wmma");
  expectRefused("//", "{ .reg .b32 %r; frobnicate.u32 %r, 1; }", "frobnicate");
  expectRefused("//", "{ .reg .b32 %r; add.u32 %r, 1; }", "2 operands");
}

TEST(PtxImage, WordsOfAnInstructionThatAreNotKnownAreRefused) {
  expectRefused("//", "{ .reg .b32 %r; add.u32.sideways %r, %r, 1; }", "sideways");
  expectRefused("//", "{ .reg .f32 %r; add.rn.frob.f32 %r, %r, %r; }", "frob");
  expectRefused("//", "{ .reg .u32 %r; .reg .u64 %l; ld.global.frob.u32 %r, [%l]; }", "frob");
}

TEST(PtxImage, TexturesAreRefusedWhereTheyAreUsed) {
  expectRefused(".global .texref picture;",
                "{ .reg .f32 %f<5>; tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [picture, {%f4, %f4}]; }", "tex");
  expectRefused("//", "{ .reg .f32 %f<5>; .reg .u64 %l; tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%l, {%f4, %f4}]; }",
                "tex");
}

TEST(PtxImage, WhatAKernelCallsIsTranslatedWithIt) {
  const std::string text = moduleHead() +
                           ".func helper() {\n.reg .b32 %r;\nfrobnicate.u32 %r, 1;\nret;\n}\n"
                           ".visible .entry calls() {\ncall helper;\nret;\n}\n.visible .entry good() { ret; }\n";
  Program program(text.c_str());
  ASSERT_NE(program.get(), nullptr) << program.why();
  EXPECT_EQ(program.kernel("calls"), nullptr);
  EXPECT_TRUE(names(program.why(), "frobnicate")) << program.why();
  EXPECT_TRUE(names(program.why(), "6")) << program.why();
  EXPECT_NE(program.kernel("good"), nullptr) << program.why();
}

TEST(PtxImage, AReasonIsCutToTheSpaceThereIs) {
  const std::string text = withCode("{ .reg .b32 %r; frobnicate.u32 %r, 1; }");
  char why[512] = "";
  const PtxProgram* const program = softgpuPtxLoad(kPtxAbiVersion, text.c_str(), 0, &kOptions, why, sizeof(why));
  ASSERT_NE(program, nullptr) << why;
  std::memset(why, 'x', sizeof(why));
  EXPECT_EQ(softgpuPtxKernel(program, 0, why, 10), nullptr);
  EXPECT_LT(::strnlen(why, sizeof(why)), 10u);
  EXPECT_EQ(why[10], 'x');
  softgpuPtxUnload(program);
}

TEST(PtxImage, MalformedTextIsRefusedWithItsLine) {
  const char* const tails[] = {
      ".visible .entry open(.param .u64 p) {\nret;\n",  // never closed
      ".visible .entry twice(.param .u64 p .param .u64 q) {\nret;\n}\n",
      ".global .u32 x = ;\n",
      ".global u32 x;\n",
      ")\n",
  };
  for (const char* const tail : tails) {
    const std::string text = moduleHead() + "// a comment\n/* and\nanother */\n" + tail;
    const Program program(text.c_str());
    EXPECT_EQ(program.get(), nullptr) << tail;
    EXPECT_TRUE(names(program.why(), "7") || names(program.why(), "8") || names(program.why(), "9")) << program.why();
  }
}

/// Errors in bodies may be found at once or when the code is made.
TEST(PtxImage, MalformedCodeIsRefusedWithItsLine) {
  for (const char* const code : {"mov.u32 %r1, ;", "add.u32 %r1 %r2;", "mov.u32 %nowhere, 1;", "bra NOWHERE;",
                                 "ld.global.u32 %nowhere, [unknown];", "call unknown;"}) {
    const std::string text = withCode(code);
    Program program(text.c_str());
    EXPECT_TRUE(program.get() == nullptr || program.kernel("bad") == nullptr) << code;
    EXPECT_TRUE(names(program.why(), "5") || names(program.why(), "6")) << code << ": " << program.why();
  }
}

TEST(PtxImage, GarbageIsRefusedWithAReason) {
  const std::string noise = "\x01\x02\x03\x7f garbage that is none of it \xff\xfe\x80", elf =
                                                                                            "\x7f"
                                                                                            "ELF\x02\x01\x01";
  for (const std::string& bytes : {noise, elf, std::string(64, '\0'), std::string("hello"), std::string(4, '\xff')}) {
    const Program program(bytes.data(), bytes.size());
    EXPECT_EQ(program.get(), nullptr);
    EXPECT_FALSE(program.why().empty());
  }
}

TEST(PtxImage, AnotherVersionOfTheContractIsRefused) {
  const std::string text = moduleHead();
  char why[512] = "";
  EXPECT_EQ(softgpuPtxLoad(kPtxAbiVersion + 1, text.c_str(), 0, &kOptions, why, sizeof(why)), nullptr);
  EXPECT_STRNE(why, "");
}

TEST(PtxImage, AModuleMayBeEmpty) {
  const Program program(moduleHead().c_str());
  ASSERT_NE(program.get(), nullptr) << program.why();
  EXPECT_EQ(program.get()->functionCount, 0u);
  EXPECT_EQ(program.get()->variableCount, 0u);
  EXPECT_EQ(program.get()->variableBytes, 0u);
}

TEST(PtxImage, TextMayGoOnceItIsRead) {
  auto text = std::make_unique<std::string>(moduleHead() + kernelText("stores", "st.global.u64 [%out], 5;"));
  Program program(text->data(), text->size());  // without a NUL inside of its bytes
  text->assign(text->size(), 'x');
  text.reset();
  ASSERT_NE(program.get(), nullptr) << program.why();
  EXPECT_EQ(program.run("stores", {}, {}, 1), std::vector<std::uint64_t>{5});
}

TEST(PtxImage, CodeIsMadeOnce) {
  const std::string text = moduleHead() + kernelText("stores", "st.global.u64 [%out], 5;");
  Program program(text.c_str());
  ASSERT_NE(program.get(), nullptr) << program.why();
  const simt::HostKernel* const kernel = program.kernel("stores");
  ASSERT_NE(kernel, nullptr) << program.why();
  EXPECT_EQ(program.kernel("stores"), kernel);
  EXPECT_STREQ(kernel->name, "stores");
  EXPECT_EQ(kernel->paramBytes, 20u);
}

TEST(PtxImage, CommentsAndDebugDirectivesSayNothing) {
  const std::string text =
      "//\n// Generated by hand\n//\n" + moduleHead() + "\t.file 1 \"x.cu\"\n/* .global .u32 hidden; */\n" +
      kernelText("stores", "\t.loc 1 5 3\n.pragma \"nounroll\";\nst.global.u64 [%out], 6; // .reg\n") +
      ".section .debug_str\n{\n.b8 1, 2, 3\n.b8 0\n}\n";
  Program program(text.c_str());
  ASSERT_NE(program.get(), nullptr) << program.why();
  EXPECT_EQ(program.get()->variableCount, 0u);
  EXPECT_EQ(program.run("stores", {}, {}, 1), std::vector<std::uint64_t>{6});
}

TEST(PtxImage, TheSameTextIsReadOnceAndOtherTextIsNot) {
  const std::string text = withCode("");
  const Program first(text.c_str(), 0, nullptr, std::nullopt);
  {
    const Program second(text.c_str(), 0, nullptr, std::nullopt);
    EXPECT_EQ(first.get(), second.get());
  }
  const Program other((text + "\n").c_str(), 0, nullptr, std::nullopt);
  EXPECT_NE(first.get(), other.get());
  const Program weak(text.c_str(), 0, nullptr, 1);
  EXPECT_NE(first.get(), weak.get()) << "its code is another";
  ASSERT_NE(first.get(), nullptr);
  EXPECT_EQ(first.get()->functionCount, 1u) << "it is there as long as anybody uses it";
}

}  // namespace
}  // namespace tutti::softgpu::test
