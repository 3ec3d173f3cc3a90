#include "softgpu/device/module.h"

#include <algorithm>
#include <cstring>

#include "softgpu/device/machine.h"
#include "softgpu/device/ptx_code.h"
#include "softgpu/say.h"

namespace tutti::softgpu {
namespace {

/// As they are when the program has just been loaded.
void initialise(const PtxProgram& program, char* variables) {
  if (program.initial != nullptr) std::memcpy(variables, program.initial, program.variableBytes);
  for (std::uint32_t i = 0; i < program.relocationCount; ++i) {
    const std::uint64_t address = reinterpret_cast<std::uintptr_t>(variables) + program.relocations[i].target;
    std::memcpy(variables + program.relocations[i].offset, &address, sizeof(address));
  }
}

}  // namespace

PlacedCode::~PlacedCode() {
  if (variables_ == nullptr || !intact()) return;
  if (machine().memory.take(variables_->base) == nullptr) return;
  machine().devices[static_cast<std::size_t>(variables_->device)]->release(*variables_);
}

bool PlacedCode::intact() const {
  return variables_ == nullptr || machine().memory.find(variables_->base) == variables_;
}

Module::Module(const simt::HostKernelTable& table) {
  for (std::uint32_t i = 0; i < table.count; ++i) {
    const simt::HostKernel& kernel = table.kernels[i];
    auto function = std::make_unique<Function>();
    function->name = kernel.name;
    function->paramBytes = kernel.paramBytes;
    function->staticSharedBytes = kernel.staticSharedBytes;
    function->maxThreads = kernel.maxThreads;
    function->module = this;
    function->kernel = &kernel;
    functions_[kernel.name] = std::move(function);
  }
}

Module::Module(std::shared_ptr<const PtxCode> code, Context* home) : code_(std::move(code)), home_(home) {
  const PtxProgram& program = code_->program();
  for (std::uint32_t i = 0; i < program.functionCount; ++i) {
    const PtxFunction& ptx = program.functions[i];
    auto function = std::make_unique<Function>();
    function->name = ptx.name;
    function->paramBytes = ptx.paramBytes;
    function->staticSharedBytes = ptx.staticSharedBytes;
    function->maxThreads = ptx.maxThreads;
    function->module = this;
    function->ptx = &ptx;
    function->index = i;
    function->dynamicSharedLimit = std::max(0, kUsualSharedBytes - static_cast<int>(ptx.staticSharedBytes));
    functions_[ptx.name] = std::move(function);
  }
}

Function* Module::find(const std::string& name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second.get();
}

CUresult Module::place(Context* current, std::shared_ptr<const PlacedCode>* placed) {
  Context* context = home_ != nullptr ? home_ : current;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard guard(lock_);
  std::shared_ptr<const PlacedCode>& here = placed_[context->device().index()];
  if (here == nullptr || !here->intact()) {
    std::shared_ptr<Allocation> variables;
    const PtxProgram& program = code_->program();
    if (program.variableBytes != 0) {
      const CUresult error =
          context->device().allocate(*context, program.variableBytes, MemoryKind::Device, &variables);
      if (error != CUDA_SUCCESS) return error;
      initialise(program, reinterpret_cast<char*>(variables->base));
    }
    here = std::make_shared<PlacedCode>(code_, std::move(variables));
  }
  *placed = here;
  return CUDA_SUCCESS;
}

CUresult Module::findVariable(Context* current, const char* name, CUdeviceptr* address, std::size_t* bytes) {
  if (code_ == nullptr) return CUDA_ERROR_NOT_FOUND;
  const PtxProgram& program = code_->program();
  const PtxVariable* const end = program.variables + program.variableCount;
  const PtxVariable* variable = std::find_if(
      program.variables, end, [name](const PtxVariable& candidate) { return std::strcmp(candidate.name, name) == 0; });
  if (variable == end) return CUDA_ERROR_NOT_FOUND;
  std::shared_ptr<const PlacedCode> placed;
  if (const CUresult error = place(current, &placed); error != CUDA_SUCCESS) return error;
  if (address != nullptr) *address = reinterpret_cast<CUdeviceptr>(placed->variables() + variable->offset);
  if (bytes != nullptr) *bytes = variable->bytes;
  return CUDA_SUCCESS;
}

const simt::HostKernel* Module::kernelOf(Function& function) const {
  if (const simt::HostKernel* kernel = function.kernel.load(std::memory_order_acquire)) return kernel;
  if (function.refused) return nullptr;
  std::string why;
  const simt::HostKernel* kernel = code_->kernel(function.index, &why);
  if (kernel == nullptr && !function.refused.exchange(true)) {
    say("kernel %s cannot run: %s", function.name, why.c_str());
  }
  function.kernel.store(kernel, std::memory_order_release);
  return kernel;
}

}  // namespace tutti::softgpu
