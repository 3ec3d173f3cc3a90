// Stands for libsoftgpu-ptx.so: images are a magic word, kernels are C++.
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <numeric>

#include "softgpu/ptx_library.h"
#include "softgpu/toy_code.h"

namespace tutti::softgpu::test {
namespace {

std::atomic<int> images{0};
std::atomic<int> kernelsMade{0};

struct Out {
  std::uint32_t* out;
};

std::uint32_t* outOf(const void* params) {
  return static_cast<const Out*>(params)->out;
}

void fillBlock(simt::HostThread* self, const void* params) {
  const auto& p = *static_cast<const ToyFill*>(params);
  for (std::uint32_t thread = 0; thread < self->threads; ++thread) {
    const std::uint32_t i = self->block * self->threads + thread;
    p.out[i] = p.base + i + p.small + static_cast<std::uint32_t>(p.real);
  }
}

void meet(simt::HostThread* self, const void* params) {
  auto* sums = static_cast<std::uint32_t*>(self->shared);
  std::uint64_t values[32] = {};
  self->ops->exchange(self, ~0u, self->thread, values);
  sums[self->thread / 32] = static_cast<std::uint32_t>(std::accumulate(values, values + 32, std::uint64_t{0}));
  self->ops->barrier(self, 0, self->threads);
  const std::uint32_t warps = (self->threads + 31) / 32;
  outOf(params)[self->block * self->threads + self->thread] = std::accumulate(sums, sums + warps, 0u);
}

struct Variables {
  std::uint32_t counter;
  std::uint32_t table[4];
  std::uint32_t* pointer;
  char rest[kToyVariableBytes - 32];
};

void countBlock(simt::HostThread* self, const void* params) {
  auto& variables = *static_cast<Variables*>(self->variables);
  outOf(params)[0] = ++*variables.pointer;
}

void shapeBlock(simt::HostThread* self, const void* params) {
  const simt::HostShape& shape = *self->shape;
  const std::uint32_t words[] = {shape.block[0], shape.block[1], shape.block[2],          shape.grid[0],
                                 shape.grid[1],  shape.grid[2],  shape.dynamicSharedBytes};
  std::memcpy(outOf(params), words, sizeof(words));
}

void sharedBlock(simt::HostThread* self, const void* params) {
  const std::uint32_t bytes = kToyStaticBytes + self->shape->dynamicSharedBytes;
  std::memset(self->shared, 1, bytes);
  outOf(params)[self->block] = bytes;
}

void crowd(simt::HostThread* self, const void* params) {
  std::uint32_t* out = outOf(params);
  if (self->thread != 0) return;
  const std::uint32_t here = std::atomic_ref(out[1]).fetch_add(1) + 1;
  std::atomic_ref most(out[0]);
  for (std::uint32_t seen = most; seen < here && !most.compare_exchange_weak(seen, here);) {
  }
  for (int i = 0; i < 4; ++i) self->ops->pause(self, false);
  std::atomic_ref(out[1]).fetch_sub(1);
}

void waitForAll(simt::HostThread* self, const void* params, bool again) {
  std::atomic_ref begun(*outOf(params));
  if (self->thread == 0) begun.fetch_add(1);
  while (begun.load() != self->blocks) self->ops->pause(self, again);
}

void gather(simt::HostThread* self, const void* params) {
  waitForAll(self, params, true);
}

void hurry(simt::HostThread* self, const void* params) {
  waitForAll(self, params, false);
}

void trapEntry(simt::HostThread* self, const void*) {
  self->ops->trap(self, "whole blocks only");
}

constexpr PtxParam kOutParam[] = {{0, 8}};
constexpr PtxParam kFillParams[] = {{offsetof(ToyFill, out), 8},
                                    {offsetof(ToyFill, base), 4},
                                    {offsetof(ToyFill, small), 1},
                                    {offsetof(ToyFill, real), 8}};
constexpr PtxFunction kFunctions[] = {
    {"fill", kFillParams, 4, sizeof(ToyFill), 0, 16, 1024},
    {"meet", kOutParam, 1, 8, 128, 0, 1024},
    {"count", kOutParam, 1, 8, 0, 0, 256},
    {"shape", kOutParam, 1, 8, 0, 0, 1024},
    {"shared", kOutParam, 1, 8, kToyStaticBytes, 0, 1024},
    {"crowd", kOutParam, 1, 8, 0, 0, 1024},
    {"gather", kOutParam, 1, 8, 0, 0, 1024},
    {"hurry", kOutParam, 1, 8, 0, 0, 1024},
    {"hungry", kOutParam, 1, 8, 0, 1 << 20, 1024},
    {"broken", kOutParam, 1, 8, 0, 0, 1024},
};
constexpr simt::HostKernel kKernels[] = {
    {"fill", trapEntry, sizeof(ToyFill), 0, 1024, fillBlock},
    {"meet", meet, 8, 128, 1024, nullptr},
    {"count", trapEntry, 8, 0, 256, countBlock},
    {"shape", trapEntry, 8, 0, 1024, shapeBlock},
    {"shared", trapEntry, 8, kToyStaticBytes, 1024, sharedBlock},
    {"crowd", crowd, 8, 0, 1024, nullptr},
    {"gather", gather, 8, 0, 1024, nullptr},
    {"hurry", hurry, 8, 0, 1024, nullptr},
    {"hungry", hurry, 8, 0, 1024, nullptr},
};
constexpr PtxVariable kVariables[] = {{"counter", offsetof(Variables, counter), 4, false},
                                      {"table", offsetof(Variables, table), 16, true},
                                      {"pointer", offsetof(Variables, pointer), 8, false}};
constexpr PtxRelocation kRelocations[] = {{offsetof(Variables, pointer), offsetof(Variables, counter)}};

struct ToyProgram : PtxProgram {
  Variables content = {kToyCounter, {1, 2, 3, 4}, nullptr, {}};
};
static_assert(sizeof(Variables) == kToyVariableBytes);

}  // namespace
}  // namespace tutti::softgpu::test

using namespace tutti::softgpu;
using namespace tutti::softgpu::test;

extern "C" {

__attribute__((visibility("default"))) const PtxProgram* softgpuPtxLoad(std::uint32_t abiVersion, const void* image,
                                                                        std::size_t bytes, const PtxOptions* options,
                                                                        char* why, std::size_t whyBytes) {
  if (abiVersion != kPtxAbiVersion || options->capability < 50) return nullptr;
  const auto* wrapper = static_cast<const ToyWrapper*>(image);
  constexpr std::uint32_t kMagic = ToyWrapper().magic;
  if (std::memcmp(image, &kMagic, sizeof(kMagic)) == 0) image = wrapper->image;
  if ((bytes != 0 && bytes < std::strlen(kToyImage)) || std::memcmp(image, "toy", 3) != 0) {
    std::snprintf(why, whyBytes, "this is no toy");
    return nullptr;
  }
  images.fetch_add(1);
  auto* program = new ToyProgram;
  program->functions = kFunctions;
  program->functionCount = std::size(kFunctions);
  program->variables = kVariables;
  program->variableCount = std::size(kVariables);
  program->relocations = kRelocations;
  program->relocationCount = std::size(kRelocations);
  program->initial = reinterpret_cast<const char*>(&program->content);
  program->variableBytes = sizeof(program->content);
  return program;
}

__attribute__((visibility("default"))) const tutti::simt::HostKernel* softgpuPtxKernel(const PtxProgram*,
                                                                                       std::uint32_t index, char* why,
                                                                                       std::size_t whyBytes) {
  if (index >= std::size(kKernels)) {
    std::snprintf(why, whyBytes, "line 7: frobnicate.b32 is not translated");
    return nullptr;
  }
  kernelsMade.fetch_add(1);
  return &kKernels[index];
}

__attribute__((visibility("default"))) void softgpuPtxUnload(const PtxProgram* program) {
  images.fetch_sub(1);
  delete static_cast<const ToyProgram*>(program);
}

__attribute__((visibility("default"))) int toyImages(void) {
  return images;
}
__attribute__((visibility("default"))) int toyKernelsMade(void) {
  return kernelsMade;
}

}  // extern "C"
