#include "softgpu/ptx/run.h"
#include "softgpu/exec/weak_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "softgpu/exec/block.h"

namespace tutti::softgpu::test {
namespace {

constexpr std::uint32_t kCapability = 90;
constexpr std::size_t kVariableAlignment = 256;

/// For the eyes of ptxas.
void keep(const char* text) {
  const char* const folder = std::getenv("SOFTGPU_PTX_KEEP");
  if (folder == nullptr) return;
  static int number = 0;
  const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(info->test_suite_name()) + "." + info->name() + "." + std::to_string(number++);
  std::ofstream(std::string(folder) + "/" + name + ".ptx") << text;
}

std::uint32_t product(const std::uint32_t (&size)[3]) {
  return size[0] * size[1] * size[2];
}

}  // namespace

Program::Program(const void* image, std::size_t bytes, const char* cacheFolder, std::optional<std::uint64_t> weakSeed)
    : weakSeed_(weakSeed) {
  char why[512] = "";
  const PtxOptions options = {kCapability, cacheFolder, weakSeed.has_value()};
  program_ = softgpuPtxLoad(kPtxAbiVersion, image, bytes, &options, why, sizeof(why));
  why_ = why;
}

Program Program::of(const std::string& body, std::optional<std::uint64_t> weakSeed) {
  const std::string text = moduleHead() + body;
  keep(text.c_str());
  return Program(text.c_str(), 0, nullptr, weakSeed);
}

std::optional<std::uint64_t> Program::weakSeedOfAll() {
  const char* const seed = std::getenv("SOFTGPU_WEAK_MEMORY");
  if (seed == nullptr) return std::nullopt;
  return std::strtoull(seed, nullptr, 10);
}

Program::~Program() {
  if (program_ != nullptr) softgpuPtxUnload(program_);
}

Program::Program(Program&& other) noexcept
    : program_(std::exchange(other.program_, nullptr)),
      weakSeed_(other.weakSeed_),
      why_(std::move(other.why_)),
      room_(std::move(other.room_)),
      place_(other.place_) {}

const PtxFunction* Program::function(const std::string& name) const {
  for (std::uint32_t i = 0; program_ != nullptr && i < program_->functionCount; ++i)
    if (name == program_->functions[i].name) return &program_->functions[i];
  return nullptr;
}

const PtxVariable* Program::variable(const std::string& name) const {
  for (std::uint32_t i = 0; program_ != nullptr && i < program_->variableCount; ++i)
    if (name == program_->variables[i].name) return &program_->variables[i];
  return nullptr;
}

const simt::HostKernel* Program::kernel(const std::string& name) {
  const PtxFunction* const found = function(name);
  if (found == nullptr) {
    if (program_ != nullptr) why_ = "there is no kernel " + name;
    return nullptr;
  }
  char why[512] = "";
  const auto* const kernel =
      softgpuPtxKernel(program_, static_cast<std::uint32_t>(found - program_->functions), why, sizeof(why));
  why_ = why;
  return kernel;
}

void Program::freshVariables() {
  room_.assign((program_->variableBytes + kVariableAlignment) / sizeof(std::max_align_t) + 1, {});
  void* place = room_.data();
  std::size_t space = room_.size() * sizeof(std::max_align_t);
  place_ = static_cast<char*>(std::align(kVariableAlignment, program_->variableBytes, place, space));
  if (program_->variableBytes != 0) std::memcpy(place_, program_->initial, program_->variableBytes);
  for (std::uint32_t i = 0; i < program_->relocationCount; ++i) {
    const PtxRelocation& relocation = program_->relocations[i];
    const auto address = reinterpret_cast<std::uint64_t>(place_) + relocation.target;
    std::memcpy(place_ + relocation.offset, &address, sizeof(address));
  }
}

KernelOperation Program::operationOf(const simt::HostKernel& kernel, const Shape& shape, KernelParams params) {
  auto code = std::make_shared<CodeLaunch>();
  for (int i = 0; i < 3; ++i) {
    code->shape.block[i] = shape.threads[i];
    code->shape.grid[i] = shape.blocks[i];
  }
  code->shape.dynamicSharedBytes = shape.dynamicSharedBytes;
  code->variables = program_->variableBytes == 0 ? nullptr : place_;
  KernelOperation operation{
      &kernel, std::move(params), product(shape.blocks), product(shape.threads), shape.dynamicSharedBytes, nullptr};
  operation.code = std::move(code);
  return operation;
}

/// What a trap said, or why it does not end; nothing if all went well.
std::string Program::runBlocks(const KernelOperation& operation) {
  static StackPool stacks;
  for (std::uint32_t index = 0; index < operation.blocks; ++index) {
    auto memory = weakSeed_ ? std::make_unique<WeakMemory>(*weakSeed_ + index, operation.threads) : nullptr;
    Block block(operation, index, stacks, std::move(memory));
    if (!block.ready()) return "no stacks";
    for (int i = 0; i < 100000 && !block.finished(); ++i) {
      block.runPass(nullptr);
      if (block.trapped() != nullptr) return *block.trapped();
    }
    if (!block.finished()) return "block " + std::to_string(index) + " does not end";
  }
  return {};
}

void Program::runWholeBlocks(const KernelOperation& operation) {
  const simt::HostShape shape = operation.shape();
  for (std::uint32_t index = 0; index < operation.blocks; ++index) {
    std::vector<std::max_align_t> shared(operation.sharedBytes() / sizeof(std::max_align_t) + 1);
    simt::HostThread self{};
    self.shared = shared.data();
    self.threads = operation.threads;
    self.block = index;
    self.blocks = operation.blocks;
    self.shape = &shape;
    self.variables = operation.variables();
    operation.kernel->wholeBlock(&self, operation.params.get());
  }
}

std::vector<std::uint64_t> Program::run(const std::string& name, const Shape& shape, const Words& inputs,
                                        std::size_t outputs, std::uint32_t count) {
  const simt::HostKernel* const code = kernel(name);
  if (code == nullptr) {
    ADD_FAILURE() << name << ": " << why_;
    return {};
  }
  // Atomics want 16 aligned bytes, and what is written behind the end is to be seen.
  const auto words = [](std::size_t n) { return std::vector<std::max_align_t>(n / 2 + 2); };
  std::vector<std::uint64_t> results[2];
  for (const bool whole : {false, true}) {
    if (whole ? code->wholeBlock == nullptr : code->entry == nullptr) continue;
    auto in = words(inputs.size()), out = words(outputs);
    auto* const first = reinterpret_cast<std::uint64_t*>(out.data());
    std::memcpy(in.data(), inputs.data(), inputs.size() * sizeof(Word));
    std::fill(first, first + outputs + 1, kUntouched);
    freshVariables();
    const Params params{reinterpret_cast<const std::uint64_t*>(in.data()), first, count};
    const auto operation = operationOf(*code, shape, copyParams(&params, sizeof(params)));
    std::string wrong;
    whole ? runWholeBlocks(operation) : void(wrong = runBlocks(operation));
    EXPECT_EQ(wrong, "") << name;
    EXPECT_EQ(first[outputs], kUntouched) << name << " wrote behind the end of its outputs";
    if (wrong.empty()) results[whole].assign(first, first + outputs);
  }
  EXPECT_TRUE(code->entry != nullptr || code->wholeBlock != nullptr) << name << " has no code";
  if (code->wholeBlock != nullptr && code->entry != nullptr) {
    EXPECT_EQ(results[0], results[1]) << name << ": a whole block at once leads to something else";
  }
  return code->entry != nullptr ? results[0] : results[1];
}

std::string Program::trapOf(const std::string& name, const Shape& shape, const Words& inputs) {
  const simt::HostKernel* const code = kernel(name);
  if (code == nullptr) {
    ADD_FAILURE() << name << ": " << why_;
    return {};
  }
  EXPECT_EQ(code->wholeBlock, nullptr) << name << " may trap";
  std::vector<std::uint64_t> in(inputs.size() + 1), out(64);
  if (!inputs.empty()) std::memcpy(in.data(), inputs.data(), inputs.size() * sizeof(Word));
  freshVariables();
  const Params params{in.data(), out.data(), 0};
  return runBlocks(operationOf(*code, shape, copyParams(&params, sizeof(params))));
}

void Program::runWith(const std::string& name, const Shape& shape, const void* params, std::size_t bytes) {
  const simt::HostKernel* const code = kernel(name);
  ASSERT_NE(code, nullptr) << name << ": " << why_;
  ASSERT_NE(code->entry, nullptr) << name;
  EXPECT_EQ(code->paramBytes, bytes) << name;
  freshVariables();
  EXPECT_EQ(runBlocks(operationOf(*code, shape, copyParams(params, bytes))), "") << name;
}

std::string moduleHead() {
  return ".version 8.3\n.target sm_90\n.address_size 64\n";
}

std::string kernelText(const std::string& name, const std::string& body) {
  return ".visible .entry " + name +
         "(.param .u64 inputs, .param .u64 outputs, .param .u32 count)\n"
         "{\n"
         ".reg .u64 %in, %out;\n"
         ".reg .u32 %count, %index, %thread, %blockSize;\n"
         "ld.param.u64 %in, [inputs];\n"
         "ld.param.u64 %out, [outputs];\n"
         "ld.param.u32 %count, [count];\n"
         "mov.u32 %index, %tid.x;\n"
         "mov.u32 %blockSize, %ntid.x;\n"
         "mov.u32 %thread, %ctaid.x;\n"
         "mad.lo.u32 %thread, %thread, %blockSize, %index;\n" +
         body + "\nret;\n}\n";
}

std::vector<std::uint64_t> runBody(const std::string& body, std::uint32_t threads, const Words& inputs,
                                   std::size_t outputs, const std::string& before) {
  Program program = Program::of(before + kernelText("body", body));
  EXPECT_NE(program.get(), nullptr) << program.why();
  if (program.get() == nullptr) return {};
  return program.run("body", {{threads, 1, 1}, {1, 1, 1}, 0}, inputs, outputs, threads);
}

std::vector<Lane> runLanes(const std::string& body, std::uint32_t threads, const std::string& before) {
  const auto words = runBody(
      ".reg .u32 %r, %s, %t<8>;\n.reg .u64 %l<4>, %mine;\n.reg .pred %p, %q;\nmov.u32 %r, 0;\nmov.u32 %s, 0;\n"
      "mul.wide.u32 %mine, %index, 8;\nadd.u64 %mine, %out, %mine;\n" +
          body + "\nst.global.v2.u32 [%mine], {%r, %s};\n",
      threads, {}, threads, before);
  std::vector<Lane> lanes;
  for (const std::uint64_t word : words)
    lanes.push_back({static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)});
  return lanes;
}

}  // namespace tutti::softgpu::test
