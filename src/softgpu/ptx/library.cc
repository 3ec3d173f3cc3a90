// libsoftgpu-ptx.so: see softgpu/ptx_library.h.
#include <cstdio>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "softgpu/ptx/code.h"
#include "softgpu/ptx/code_cache.h"
#include "softgpu/ptx/fatbin.h"
#include "softgpu/ptx/text/parser.h"
#include "softgpu/ptx_library.h"

namespace tutti::softgpu::ptx {
namespace {

constexpr std::uint32_t kMostThreads = 1024;

struct LoadedKernel {
  const Function* function = nullptr;
  KernelReach reach;
  ParameterLayout parameters;
  simt::HostKernel code = {};
  bool compiled = false;
};

/// A PtxProgram and all that it points to. Whoever loads the same text for the same purpose shares it: a program loads
/// its code on every device.
struct Loaded : PtxProgram {
  Program program;
  VariableLayout layout;
  std::deque<LoadedKernel> kernels;
  std::vector<PtxFunction> functionTable;
  std::unique_ptr<Code> code;
  std::string textSum;
  std::string cacheFolder;
  bool weakMemory = false;
  std::mutex mutex;
  std::string key;  ///< in Shared
  int users = 1;    ///< guarded by Shared's mutex
};

/// Never destroyed: programs unload code as late as they like.
struct Shared {
  std::mutex mutex;
  std::map<std::string, Loaded*> programs;
};
Shared& shared() {
  static auto& all = *new Shared;
  return all;
}

void say(const std::string& what, char* why, std::size_t whyBytes) {
  if (why != nullptr && whyBytes != 0) std::snprintf(why, whyBytes, "%s", what.c_str());
}

PtxFunction describe(const LoadedKernel& kernel) {
  PtxFunction described = {};
  described.name = kernel.function->name.c_str();
  described.params = kernel.parameters.params.data();
  described.paramCount = static_cast<std::uint32_t>(kernel.parameters.params.size());
  described.paramBytes = kernel.parameters.bytes;
  described.staticSharedBytes = kernel.reach.sharedBytes;
  described.localBytes = kernel.reach.localBytes;
  described.maxThreads = kernel.function->maxThreads == 0 ? kMostThreads : kernel.function->maxThreads;
  return described;
}

std::unique_ptr<Loaded> load(const std::string& text, const PtxOptions& options) {
  auto loaded = std::make_unique<Loaded>();
  loaded->program = parseProgram(text);
  loaded->cacheFolder = options.cacheFolder == nullptr ? "" : options.cacheFolder;
  loaded->weakMemory = options.weakMemory;
  loaded->layout = layOut(loaded->program);
  for (const std::string& name : loaded->program.entries) {
    const Function& function = *loaded->program.functions.at(name);
    LoadedKernel& kernel = loaded->kernels.emplace_back();
    kernel.function = &function;
    kernel.reach = reachOf(loaded->program, loaded->layout, function);
    kernel.parameters = layOut(function.signature.parameters);
    loaded->functionTable.push_back(describe(kernel));
  }
  loaded->functions = loaded->functionTable.data();
  loaded->functionCount = static_cast<std::uint32_t>(loaded->functionTable.size());
  loaded->variables = loaded->layout.places.data();
  loaded->variableCount = static_cast<std::uint32_t>(loaded->layout.places.size());
  loaded->relocations = loaded->layout.relocations.data();
  loaded->relocationCount = static_cast<std::uint32_t>(loaded->layout.relocations.size());
  loaded->initial = loaded->layout.initial.data();
  loaded->variableBytes = loaded->layout.initial.size();
  return loaded;
}

Loaded* loadOnce(const std::string& text, const PtxOptions& options) {
  const std::string sum = sha256(text);
  const std::string folder = options.cacheFolder == nullptr ? "" : options.cacheFolder;
  const std::string key = sum + (options.weakMemory ? " weak " : " ") + folder;
  const std::lock_guard lock(shared().mutex);
  if (const auto known = shared().programs.find(key); known != shared().programs.end()) {
    ++known->second->users;
    return known->second;
  }
  std::unique_ptr<Loaded> loaded = load(text, options);
  loaded->textSum = sum;
  loaded->key = key;
  shared().programs[key] = loaded.get();
  return loaded.release();
}

void unload(const Loaded& program) {
  auto& used = const_cast<Loaded&>(program);
  {
    const std::lock_guard lock(shared().mutex);
    if (--used.users > 0) return;
    shared().programs.erase(used.key);
  }
  delete &program;
}

void compile(Loaded& program, LoadedKernel& kernel) {
  if (program.code == nullptr) program.code = std::make_unique<Code>(program.textSum, program.cacheFolder);
  addLoops(kernel.reach);
  // In weak memory every thread has a place of its own, where its stores wait.
  kernel.reach.waits = kernel.reach.waits || program.weakMemory;
  const KernelCode code =
      program.code->compile({program.program, program.layout, kernel.reach, program.weakMemory}, *kernel.function);
  const PtxFunction described = describe(kernel);
  kernel.code = {described.name,       code.thread, described.paramBytes, described.staticSharedBytes,
                 described.maxThreads, code.block};
  kernel.compiled = true;
}

/// Runs `make` and puts what it throws into `why`.
template <class Result, class Make>
Result guarded(char* why, std::size_t whyBytes, const std::string& prefix, const Make& make) {
  try {
    return make();
  } catch (const TextError& error) {
    say(prefix + "line " + std::to_string(error.line) + " of its PTX: " + error.what, why, whyBytes);
  } catch (const ImageError& error) {
    say(prefix + error.what, why, whyBytes);
  } catch (const CodeError& error) {
    say(prefix + error.what, why, whyBytes);
  } catch (const std::exception& error) {
    say(prefix + error.what(), why, whyBytes);
  }
  return nullptr;
}

}  // namespace
}  // namespace tutti::softgpu::ptx

using namespace tutti;
using namespace tutti::softgpu;

extern "C" {

__attribute__((visibility("default"))) const PtxProgram* softgpuPtxLoad(std::uint32_t abiVersion, const void* image,
                                                                        std::size_t bytes, const PtxOptions* options,
                                                                        char* why, std::size_t whyBytes) {
  if (abiVersion != kPtxAbiVersion) {
    ptx::say("libsoftgpu-ptx.so has ABI version " + std::to_string(kPtxAbiVersion) + ", libcuda.so.1 has " +
                 std::to_string(abiVersion) + ": take both from one build",
             why, whyBytes);
    return nullptr;
  }
  return ptx::guarded<const PtxProgram*>(
      why, whyBytes, "", [&] { return ptx::loadOnce(ptx::ptxOf(image, bytes, options->capability), *options); });
}

__attribute__((visibility("default"))) const simt::HostKernel* softgpuPtxKernel(const PtxProgram* given,
                                                                                std::uint32_t index, char* why,
                                                                                std::size_t whyBytes) {
  auto& program = static_cast<ptx::Loaded&>(const_cast<PtxProgram&>(*given));
  if (index >= program.kernels.size()) {
    ptx::say("there is no such kernel", why, whyBytes);
    return nullptr;
  }
  ptx::LoadedKernel& kernel = program.kernels[index];
  return ptx::guarded<const simt::HostKernel*>(why, whyBytes, "kernel " + kernel.function->name + ", ", [&] {
    const std::lock_guard lock(program.mutex);
    if (!kernel.compiled) ptx::compile(program, kernel);
    return &kernel.code;
  });
}

__attribute__((visibility("default"))) void softgpuPtxUnload(const PtxProgram* program) {
  ptx::unload(*static_cast<const ptx::Loaded*>(program));
}

}  // extern "C"
