// The LLVM module that a kernel becomes, with all functions that it reaches.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "softgpu/ptx/translate/source.h"

namespace tutti::softgpu::ptx {

/// Names of the functions that a unit exports: one thread of the kernel, and all threads of a block.
inline constexpr const char* kThreadEntry = "thread";
inline constexpr const char* kBlockEntry = "block";

/// What functions of one kernel have in common while they are translated.
struct Unit : KernelSource {
  llvm::LLVMContext& context;
  llvm::Module& module;
  std::map<std::string, llvm::Function*> functions;  ///< all of `reach` but the kernel, declared

  /// A function of support.h.
  llvm::FunctionCallee support(const std::string& name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> parameters);
};

/// Translates `kernel` and what it reaches. Throws TextError where something is not translated.
std::unique_ptr<llvm::Module> translate(const KernelSource& source, const Function& kernel, llvm::LLVMContext& context);

}  // namespace tutti::softgpu::ptx
