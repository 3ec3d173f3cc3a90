// What programs load: kernels compiled for the host, registered by softgpuRegisterKernels, or GPU code.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "device/simt/simt_host_abi.h"
#include "softgpu/memory/memory.h"

namespace tutti::softgpu {

class Context;
class Module;
class PtxCode;
struct PtxFunction;

/// Static and dynamic shared memory of a block: without being asked for more, and at most.
inline constexpr int kUsualSharedBytes = 48 << 10;
inline constexpr int kMostSharedBytes = 227 << 10;

/// A CUfunction and a CUkernel. Lives as long as its module.
struct Function {
  const char* name = nullptr;
  std::uint32_t paramBytes = 0;
  std::uint32_t staticSharedBytes = 0;
  std::uint32_t maxThreads = 0;  ///< of a block
  Module* module = nullptr;
  const PtxFunction* ptx = nullptr;  ///< null: compiled for the host
  std::uint32_t index = 0;           ///< in the program, of GPU code
  std::atomic<int> dynamicSharedLimit{kUsualSharedBytes};
  std::atomic<const simt::HostKernel*> kernel{nullptr};  ///< of GPU code: null before the first launch
  std::atomic<bool> refused{false};                      ///< its code cannot be made, and the user knows
};

/// GPU code on a device: with the variables that its kernels use there, which are given back at the end.
class PlacedCode {
 public:
  PlacedCode(std::shared_ptr<const PtxCode> code, std::shared_ptr<Allocation> variables)
      : code_(std::move(code)), variables_(std::move(variables)) {}
  ~PlacedCode();
  PlacedCode(const PlacedCode&) = delete;
  PlacedCode& operator=(const PlacedCode&) = delete;
  /// Null where the code has none.
  char* variables() const { return variables_ == nullptr ? nullptr : reinterpret_cast<char*>(variables_->base); }
  /// Whether they are still there: a context that is reset takes its memory along.
  bool intact() const;

 private:
  std::shared_ptr<const PtxCode> code_;
  std::shared_ptr<Allocation> variables_;
};

/// A CUmodule and a CUlibrary. Any thread.
class Module {
 public:
  explicit Module(const simt::HostKernelTable& table);
  /// `home`: the context of a module; null for a library, whose variables are there once on each device.
  Module(std::shared_ptr<const PtxCode> code, Context* home);

  /// Null for a name that it does not have.
  Function* find(const std::string& name) const;
  const std::map<std::string, std::unique_ptr<Function>>& functions() const { return functions_; }
  /// Null of kernels compiled for the host.
  const PtxCode* code() const { return code_.get(); }
  /// The code on the device of `current`, or on that of the module's own context.
  CUresult place(Context* current, std::shared_ptr<const PlacedCode>* placed);
  /// The variable `name` there.
  CUresult findVariable(Context* current, const char* name, CUdeviceptr* address, std::size_t* bytes);
  /// What runs `function`; made at its first launch. Null where it holds what is not translated: said on stderr, once.
  const simt::HostKernel* kernelOf(Function& function) const;

 private:
  std::map<std::string, std::unique_ptr<Function>> functions_;
  std::shared_ptr<const PtxCode> code_;
  Context* home_ = nullptr;
  std::mutex lock_;
  std::map<int, std::shared_ptr<const PlacedCode>> placed_;  ///< by device
};

}  // namespace tutti::softgpu
