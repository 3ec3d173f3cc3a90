// The library's kernels on one device, loaded when first asked for.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/handle.h"
#include "base/status.h"
#include "gpu/context.h"
#include "gpu/kernel_source.h"

namespace tutti::gpu {

namespace detail {
struct ModuleTraits : DeviceTraits<CUmodule> {
  static void close(Type held);
};
}  // namespace detail

/// Where the software GPU's kernels are for a libnccl.so.2 in `folder`: beside it, as in the build tree, or, where they
/// are not, in the folder `tutti` there, as `meson install` puts them, out of the loader's path. Any thread.
std::string hostModuleIn(const std::filesystem::path& folder);

/// Kernels of one device: from the fatbins inside the library, or, on the software GPU, from libtutti-kernels-host.so
/// beside it (hostModuleIn). The device must outlive it. Thread-safe.
class KernelSet {
 public:
  /// Loads nothing yet.
  static Result<std::unique_ptr<KernelSet>> create(const Device& device, KernelSource source = {});

  /// The kernel of that name, "tutti_AllReduce_Ring_Simple_Sum_f32"; loads its module if need be, so ask for it before
  /// work is in flight. Errors: ncclInvalidUsage for a kernel that this build lacks, ncclUnhandledCudaError with the
  /// remedy if its module cannot be loaded.
  Result<CUfunction> get(std::string_view kernelName);

  /// Loads all kernels of this build, so that no get() loads anything from then on. For devices that several ranks of
  /// this process share: loading may wait until the whole device is idle (CUDA's "lazy loading"), and what runs there
  /// may wait for the very rank that is loading. On the software GPU, where one module has all, nothing is left to do.
  Status loadAll();

 private:
  using Module = Handle<detail::ModuleTraits>;
  KernelSet(const Device& device, KernelSource source) : device_(&device), source_(std::move(source)) {}
  /// Those of the software GPU that are compiled for the host.
  bool usesHostKernels() const;
  CUfunction known(std::string_view kernelName);
  Result<CUfunction> find(std::string_view kernelName, CUmodule module);
  Result<CUmodule> moduleFor(const std::string& family);
  Result<CUmodule> loadHostModule();
  Result<CUmodule> loadFatbin(const std::string& family);

  const Device* device_;
  const KernelSource source_;
  std::mutex loading_;  ///< guards what follows, and may be held for long
  std::map<std::string, Module, std::less<>> modules_;
  bool allLoaded_ = false;
  std::mutex functionsMutex_;  ///< never held while the driver works
  std::map<std::string, CUfunction, std::less<>> functions_;
};

}  // namespace tutti::gpu
