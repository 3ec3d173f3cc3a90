// Modules and libraries of GPU code: what can be loaded, what is in them, how long they stay.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "softgpu/driver/code_fixture.h"

namespace tutti::softgpu::test {
namespace {

TEST_F(CodeTest, AnImageOfEachFormIsLoaded) {
  const ToyWrapper wrapper{.image = kToyImage};
  const std::string path = testing::TempDir() + "toy_" + std::to_string(::getpid()) + ".ptx";
  std::ofstream(path) << kToyImage;
  CUmodule modules[4] = {};
  EXPECT_CU(cuModuleLoadDataEx(&modules[0], kToyImage, 0, nullptr, nullptr));
  EXPECT_CU(cuModuleLoadFatBinary(&modules[1], &wrapper));
  EXPECT_CU(cuModuleLoadData(&modules[2], &wrapper));
  EXPECT_CU(cuModuleLoad(&modules[3], path.c_str()));
  std::remove(path.c_str());
  for (CUmodule module : modules) {
    CUfunction found = nullptr;
    EXPECT_CU(cuModuleGetFunction(&found, module, "fill"));
    EXPECT_CU_ERROR(cuModuleGetFunction(&found, module, "absent"), CUDA_ERROR_NOT_FOUND);
    EXPECT_CU(cuModuleUnload(module));
    EXPECT_CU_ERROR(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
  }
  EXPECT_CU_ERROR(cuModuleLoad(&modules[0], path.c_str()), CUDA_ERROR_FILE_NOT_FOUND);
}

TEST_F(CodeTest, WhatCannotBeReadIsRefusedAndTheLogSaysWhy) {
  CUmodule module = nullptr;
  char log[64] = "untouched";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER};
  void* values[] = {reinterpret_cast<void*>(sizeof(log)), log};
  EXPECT_CU_ERROR(cuModuleLoadDataEx(&module, "code", 2, options, values), CUDA_ERROR_INVALID_PTX);
  EXPECT_STREQ(log, "this is no toy");
  EXPECT_EQ(reinterpret_cast<std::size_t>(values[0]), std::string("this is no toy").size());
  char shortLog[8];
  void* shortValues[] = {reinterpret_cast<void*>(sizeof(shortLog)), shortLog};
  EXPECT_CU_ERROR(cuModuleLoadDataEx(&module, "code", 2, options, shortValues), CUDA_ERROR_INVALID_PTX);
  EXPECT_STREQ(shortLog, "this is");
  EXPECT_CU(cuModuleLoadDataEx(&module, kToyImage, 2, options, values));
  EXPECT_STREQ(log, "");
  EXPECT_CU(cuModuleUnload(module));
  const ToyWrapper empty{.image = "no code"};
  EXPECT_CU_ERROR(cuModuleLoadData(&module, &empty), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_CU_ERROR(cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CodeTest, FunctionsAreListedWithWhatTheyNeed) {
  unsigned count = 0;
  EXPECT_CU(cuModuleGetFunctionCount(&count, code_));
  ASSERT_EQ(count, 10u);
  CUfunction all[10] = {};
  EXPECT_CU(cuModuleEnumerateFunctions(all, 10, code_));
  std::set<std::string> names;
  for (CUfunction one : all) {
    const char* name = nullptr;
    EXPECT_CU(cuFuncGetName(&name, one));
    names.insert(name);
  }
  EXPECT_EQ(names, (std::set<std::string>{"broken", "count", "crowd", "fill", "gather", "hungry", "hurry", "meet",
                                          "shape", "shared"}));
  const auto attribute = [](CUfunction of, CUfunction_attribute which) {
    int value = -1;
    EXPECT_CU(cuFuncGetAttribute(&value, which, of));
    return value;
  };
  EXPECT_EQ(attribute(function("count"), CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 256);
  EXPECT_EQ(attribute(function("fill"), CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), 16);
  EXPECT_EQ(attribute(function("shared"), CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 1024);
  EXPECT_EQ(attribute(function("shared"), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), 47 << 10);
  std::size_t offset = 0;
  std::size_t bytes = 0;
  EXPECT_CU(cuFuncGetParamInfo(function("fill"), 3, &offset, &bytes));
  EXPECT_EQ(offset, offsetof(ToyFill, real));
  EXPECT_EQ(bytes, sizeof(double));
  EXPECT_CU_ERROR(cuFuncGetParamInfo(function("fill"), 4, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CodeTest, VariablesAreInDeviceMemoryAsTheImageHasThem) {
  CUdeviceptr counter = 0;
  CUdeviceptr pointer = 0;
  CUdeviceptr table = 0;
  std::size_t bytes = 0;
  EXPECT_CU(cuModuleGetGlobal(&counter, &bytes, code_, "counter"));
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(counter % 256, 0u);
  EXPECT_CU(cuModuleGetGlobal(&pointer, nullptr, code_, "pointer"));
  EXPECT_CU(cuModuleGetGlobal(&table, &bytes, code_, "table"));
  EXPECT_EQ(bytes, 16u);
  EXPECT_CU_ERROR(cuModuleGetGlobal(&table, &bytes, code_, "absent"), CUDA_ERROR_NOT_FOUND);
  std::uint32_t content[4] = {};
  EXPECT_CU(cuMemcpyDtoH(content, table, sizeof(content)));
  EXPECT_EQ(content[3], 4u);
  CUdeviceptr target = 0;
  EXPECT_CU(cuMemcpyDtoH(&target, pointer, sizeof(target)));
  EXPECT_EQ(target, counter) << "an address of one variable in another";
  const std::uint32_t value = 40;
  EXPECT_CU(cuMemcpyHtoD(counter, &value, sizeof(value)));
  std::uint32_t* out = words();
  EXPECT_CU(launchOut("count", {}, {}, out));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(out[0], 41u) << "the kernel reaches the same variable, by its address";
}

TEST_F(CodeTest, ModulesHaveVariablesOfTheirOwnAndLibrariesThoseOfEachDevice) {
  CUlibrary library = nullptr;
  EXPECT_CU(cuLibraryLoadData(&library, kToyImage, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUdeviceptr of[3] = {};
  EXPECT_CU(cuModuleGetGlobal(&of[0], nullptr, code_, "counter"));
  EXPECT_CU(cuLibraryGetGlobal(&of[1], nullptr, library, "counter"));
  EXPECT_CU(cuCtxSetCurrent(contexts_[1]));
  EXPECT_CU(cuLibraryGetGlobal(&of[2], nullptr, library, "counter"));
  CUdeviceptr again = 0;
  EXPECT_CU(cuModuleGetGlobal(&again, nullptr, code_, "counter"));
  EXPECT_EQ(again, of[0]) << "a module's are where it was loaded";
  EXPECT_CU(cuCtxSetCurrent(contexts_[0]));
  EXPECT_NE(of[0], of[1]);
  EXPECT_NE(of[1], of[2]);
  int device = -1;
  EXPECT_CU(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, of[2]));
  EXPECT_EQ(device, 1);
  EXPECT_CU(cuLibraryUnload(library));
}

TEST_F(CodeTest, ALibraryTellsItsKernels) {
  CUlibrary library = nullptr;
  EXPECT_CU(cuLibraryLoadData(&library, kToyImage, nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned count = 0;
  EXPECT_CU(cuLibraryGetKernelCount(&count, library));
  ASSERT_EQ(count, 10u);
  CUkernel kernels[10] = {};
  EXPECT_CU(cuLibraryEnumerateKernels(kernels, 10, library));
  CUkernel fill = nullptr;
  EXPECT_CU(cuLibraryGetKernel(&fill, library, "fill"));
  EXPECT_NE(std::find(kernels, kernels + 9, fill), kernels + 9);
  const char* name = nullptr;
  EXPECT_CU(cuKernelGetName(&name, fill));
  EXPECT_STREQ(name, "fill");
  CUlibrary owner = nullptr;
  EXPECT_CU(cuKernelGetLibrary(&owner, fill));
  EXPECT_EQ(owner, library);
  EXPECT_CU_ERROR(cuKernelGetLibrary(&owner, reinterpret_cast<CUkernel>(&name)), CUDA_ERROR_INVALID_HANDLE);
  std::size_t offset = 0;
  EXPECT_CU(cuKernelGetParamInfo(fill, 1, &offset, nullptr));
  EXPECT_EQ(offset, offsetof(ToyFill, base));
  CUmodule module = nullptr;
  CUfunction of = nullptr;
  EXPECT_CU(cuLibraryGetModule(&module, library));
  EXPECT_CU(cuModuleGetFunction(&of, module, "count"));
  std::uint32_t* out = words();
  EXPECT_CU(launchOut(of, {}, {}, out));
  EXPECT_CU(cuKernelGetFunction(&of, fill));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(out[0], kToyCounter + 1);
  EXPECT_CU(cuLibraryUnload(library));
}

TEST_F(CodeTest, CodeIsMadeAtTheFirstLaunch) {
  const int before = ask("toyKernelsMade");
  CUfunction count = function("count");
  EXPECT_EQ(ask("toyKernelsMade"), before);
  for (int i = 0; i < 3; ++i) EXPECT_CU(launchOut(count, {}, {}, words()));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(ask("toyKernelsMade"), before + 1);
}

TEST_F(CodeTest, WhatIsNotTranslatedIsRefusedAtLaunchAndSaidOnce) {
  CUfunction broken = function("broken");
  testing::internal::CaptureStderr();
  EXPECT_CU_ERROR(launchOut(broken, {}, {}, words()), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_CU_ERROR(launchOut(broken, {}, {}, words()), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "softgpu: kernel broken cannot run: line 7: frobnicate.b32 is not translated\n");
}

/// Holds a stream until it is opened.
struct Gate {
  std::atomic<bool> open{false};
  static void wait(void* gate) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!static_cast<Gate*>(gate)->open && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  }
};

TEST_F(CodeTest, UnloadedCodeStaysAsLongAsALaunchOfItWaits) {
  const int images = ask("toyImages");
  std::uint32_t* out = words();
  std::size_t freeBefore = 0;
  std::size_t freeAfter = 0;
  std::size_t total = 0;
  Gate gate;
  EXPECT_CU(cuLaunchHostFunc(stream_, Gate::wait, &gate));
  EXPECT_CU(launchOut("count", {}, {}, out));
  EXPECT_CU(cuMemGetInfo(&freeBefore, &total));
  EXPECT_CU(cuModuleUnload(code_));
  code_ = nullptr;
  EXPECT_EQ(ask("toyImages"), images);
  gate.open = true;
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(out[0], kToyCounter + 1);
  // The engine drops what it has done a moment after it says so.
  for (int i = 0; i < 5000 && ask("toyImages") != images - 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(ask("toyImages"), images - 1);
  EXPECT_CU(cuMemGetInfo(&freeAfter, &total));
  EXPECT_EQ(freeAfter, freeBefore + kToyVariableBytes) << "its variables are gone, too";
}

TEST_F(CodeTest, AResetContextHasItsVariablesAnew) {
  CUlibrary library = nullptr;
  EXPECT_CU(cuLibraryLoadData(&library, kToyImage, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUdeviceptr counter = 0;
  const std::uint32_t other = 1000;
  EXPECT_CU(cuLibraryGetGlobal(&counter, nullptr, library, "counter"));
  EXPECT_CU(cuMemcpyHtoD(counter, &other, sizeof(other)));
  EXPECT_CU(cuDevicePrimaryCtxReset(0));
  EXPECT_CU(cuStreamCreate(&stream_, 0));
  std::uint32_t value = 0;
  EXPECT_CU(cuLibraryGetGlobal(&counter, nullptr, library, "counter"));
  EXPECT_CU(cuMemcpyDtoH(&value, counter, sizeof(value)));
  EXPECT_EQ(value, kToyCounter);
  EXPECT_CU(cuLibraryUnload(library));
}

TEST_F(CodeTest, TheLinkerPassesOneImageOnAndRefusesTwo) {
  CUlinkState linker = nullptr;
  void* image = nullptr;
  std::size_t bytes = 0;
  std::string text = kToyImage;
  EXPECT_CU(cuLinkCreate(0, nullptr, nullptr, &linker));
  EXPECT_CU_ERROR(cuLinkAddData(linker, CU_JIT_INPUT_CUBIN, text.data(), text.size(), "a", 0, nullptr, nullptr),
                  CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_CU(cuLinkAddData(linker, CU_JIT_INPUT_PTX, text.data(), text.size(), "a", 0, nullptr, nullptr));
  EXPECT_CU(cuLinkComplete(linker, &image, &bytes));
  CUmodule module = nullptr;
  EXPECT_CU(cuModuleLoadData(&module, image));
  EXPECT_CU(cuLinkAddData(linker, CU_JIT_INPUT_PTX, text.data(), text.size(), "b", 0, nullptr, nullptr));
  EXPECT_CU_ERROR(cuLinkComplete(linker, &image, &bytes), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_CU(cuLinkDestroy(linker));
  EXPECT_CU_ERROR(cuLinkDestroy(linker), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CU(cuModuleUnload(module));
}

}  // namespace
}  // namespace tutti::softgpu::test
