#include "softgpu/ptx/code.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SHA1.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <utility>

#include "softgpu/ptx/code_cache.h"
#include "softgpu/ptx/support/support.h"
#include "softgpu/ptx/translate/unit.h"

namespace tutti::softgpu::ptx {
namespace {

template <class T>
T need(llvm::Expected<T> value) {
  if (!value) throw CodeError{"LLVM says: " + llvm::toString(value.takeError())};
  return static_cast<T&&>(*value);
}
void need(llvm::Error error) {
  if (error) throw CodeError{"LLVM says: " + llvm::toString(std::move(error))};
}

llvm::orc::JITTargetMachineBuilder targetBuilder() {
  static const bool kReady = !llvm::InitializeNativeTarget() && !llvm::InitializeNativeTargetAsmPrinter();
  if (!kReady) throw CodeError{"LLVM knows no target for this processor"};
  auto builder = need(llvm::orc::JITTargetMachineBuilder::detectHost());
  // PTX says where a multiplication and a sum are one.
  builder.getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  builder.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  return builder;
}

void optimize(llvm::Module& module, llvm::TargetMachine& target) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder passes(&target);
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(callGraph);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, callGraph, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

std::unique_ptr<llvm::MemoryBuffer> compileKernel(llvm::TargetMachine& target, const KernelSource& source,
                                                  const Function& kernel) {
  llvm::LLVMContext context;
  const auto module = translate(source, kernel, context);
  module->setDataLayout(target.createDataLayout());
  module->setTargetTriple(target.getTargetTriple().str());
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(*module, &stream)) {
    throw CodeError{"the translation of kernel " + kernel.name +
                    " is wrong, which is a defect of the software GPU: " + problem};
  }
  optimize(*module, target);
  llvm::orc::SimpleCompiler compiler(target);
  return need(compiler(*module));
}

llvm::orc::SymbolMap supportSymbols(llvm::orc::LLJIT& jit) {
  llvm::orc::SymbolMap symbols;
  for (const SupportFunction& function : supportFunctions()) {
    symbols[jit.mangleAndIntern(function.name)] = {llvm::orc::ExecutorAddr::fromPtr(function.address),
                                                   llvm::JITSymbolFlags::Exported};
  }
  return symbols;
}

}  // namespace

struct Code::Jit {
  llvm::orc::JITTargetMachineBuilder builder = targetBuilder();
  std::unique_ptr<llvm::TargetMachine> target = need(builder.createTargetMachine());
  std::unique_ptr<llvm::orc::LLJIT> jit = need(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(builder).create());
  CodeCache cache;
  int kernels = 0;
};

Code::Code(std::string textSum, std::string cacheFolder)
    : jit_(new Jit{.cache = CodeCache(std::move(cacheFolder))}), textSum_(std::move(textSum)) {}

Code::~Code() = default;

KernelCode Code::compile(const KernelSource& source, const Function& kernel) {
  llvm::TargetMachine& target = *jit_->target;
  CodeCache& cache = jit_->cache;
  const std::string name = textSum_ + "\n" + kernel.name + (source.weakMemory ? "\nweak\n" : "\n") +
                           LLVM_VERSION_STRING + "\n" + target.getTargetCPU().str() + "\n" +
                           target.getTargetFeatureString().str();
  std::unique_ptr<llvm::MemoryBuffer> object = cache.find(name);
  if (object == nullptr) {
    object = compileKernel(target, source, kernel);
    cache.keep(name, *object);
  }
  llvm::orc::LLJIT& jit = *jit_->jit;
  llvm::orc::JITDylib& library = need(jit.createJITDylib("kernel" + std::to_string(jit_->kernels++)));
  need(library.define(llvm::orc::absoluteSymbols(supportSymbols(jit))));
  need(jit.addObjectFile(library, std::move(object)));
  KernelCode code;
  code.thread = need(jit.lookup(library, kThreadEntry)).toPtr<decltype(code.thread)>();
  if (!source.reach.waits) code.block = need(jit.lookup(library, kBlockEntry)).toPtr<decltype(code.block)>();
  return code;
}

}  // namespace tutti::softgpu::ptx
