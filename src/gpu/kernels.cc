#include "gpu/kernels.h"

#include <filesystem>
#include <system_error>

#include "base/dl.h"
#include "base/log.h"
#include "device/kernels/fatbins.h"
#include "device/simt/simt_host_abi.h"

namespace tutti::gpu {
namespace {

constexpr const char* kHostModule = "libtutti-kernels-host.so";
constexpr const char* kHostFamily = "host";

/// "tutti_AllReduce_Ring_Simple_Sum_f32" lives in family "AllReduce_Ring_Simple_f32": all but the operation.
std::string familyOf(std::string_view kernelName) {
  constexpr std::string_view kPrefix = "tutti_";
  if (kernelName.starts_with(kPrefix)) kernelName.remove_prefix(kPrefix.size());
  const std::size_t type = kernelName.rfind('_');
  if (type == std::string_view::npos || type == 0) return std::string(kernelName);
  const std::size_t op = kernelName.rfind('_', type - 1);
  if (op == std::string_view::npos) return std::string(kernelName);
  return std::string(kernelName.substr(0, op)) + std::string(kernelName.substr(type));
}

/// The kernel of a family that does `op`: the reverse of familyOf().
std::string kernelOf(std::string_view family, std::string_view op) {
  const std::size_t type = family.rfind('_');
  return "tutti_" + std::string(family.substr(0, type)) + "_" + std::string(op) + std::string(family.substr(type));
}

std::string besideThisLibrary() {
  const std::string own = libraryPathOf(reinterpret_cast<const void*>(&besideThisLibrary));
  return hostModuleIn(std::filesystem::path(own).parent_path());
}

}  // namespace

std::string hostModuleIn(const std::filesystem::path& folder) {
  const std::filesystem::path installed = folder / "tutti" / kHostModule;
  std::error_code none;
  if (!std::filesystem::exists(folder / kHostModule, none) && std::filesystem::exists(installed, none)) {
    return installed.string();
  }
  return (folder / kHostModule).string();
}

void detail::ModuleTraits::close(Type held) {
  giveBack(held, &Driver::cuModuleUnload, "cuModuleUnload");
}

Result<std::unique_ptr<KernelSet>> KernelSet::create(const Device& device, KernelSource source) {
  return std::unique_ptr<KernelSet>(new KernelSet(device, std::move(source)));
}

bool KernelSet::usesHostKernels() const {
  return device_->driver().softGpu && !source_.fatbins;
}

CUfunction KernelSet::known(std::string_view kernelName) {
  const std::lock_guard lock(functionsMutex_);
  const auto found = functions_.find(kernelName);
  return found == functions_.end() ? nullptr : found->second;
}

Result<CUfunction> KernelSet::get(std::string_view kernelName) {
  if (CUfunction const function = known(kernelName); function != nullptr) return function;
  const std::lock_guard lock(loading_);
  if (CUfunction const function = known(kernelName); function != nullptr) return function;
  ASSIGN(const ContextGuard guard, device_->enter());
  ASSIGN(CUmodule const module, moduleFor(usesHostKernels() ? kHostFamily : familyOf(kernelName)));
  ASSIGN(CUfunction const function, find(kernelName, module));
  if (function != nullptr) return function;
  return fail(ncclInvalidUsage,
              "This build of tutti has no kernel {}: rebuild it without -Donly_kernels, or choose another algorithm, "
              "protocol, operation or type",
              kernelName);
}

Status KernelSet::loadAll() {
  const std::lock_guard lock(loading_);
  if (usesHostKernels() || allLoaded_) return {};
  ASSIGN(const ContextGuard guard, device_->enter());
  for (const device::Fatbin& fatbin : device::embeddedFatbins()) {
    ASSIGN(CUmodule const module, moduleFor(fatbin.family));
    for (const char* op : {"Copy", "Sum", "Any"}) TRY(find(kernelOf(fatbin.family, op), module).status());
  }
  allLoaded_ = true;
  return {};
}

/// The kernel of that name, null if the module has none. This is what loads its code.
Result<CUfunction> KernelSet::find(std::string_view kernelName, CUmodule module) {
  CUfunction function = nullptr;
  const std::string name(kernelName);
  const CUresult result = device_->driver().cuModuleGetFunction(&function, module, name.c_str());
  if (result == CUDA_ERROR_NOT_FOUND) return CUfunction{nullptr};
  TRY(checkCu(device_->driver(), result, CuCall{"cuModuleGetFunction", device_->ordinal(), 0, "kernel " + name}));
  const std::lock_guard lock(functionsMutex_);
  functions_.emplace(name, function);
  return function;
}

Result<CUmodule> KernelSet::moduleFor(const std::string& family) {
  if (const auto known = modules_.find(family); known != modules_.end()) return known->second.get().raw;
  auto loaded = usesHostKernels() ? loadHostModule() : loadFatbin(family);
  if (loaded.ok()) modules_.emplace(family, Module({device_, loaded.value()}));
  return loaded;
}

Result<CUmodule> KernelSet::loadHostModule() {
  const std::string path = source_.hostFile.empty() ? besideThisLibrary() : source_.hostFile;
  std::string why;
  DlLibrary object = DlLibrary::open(path, &why);
  if (!object.valid()) {
    return fail(ncclSystemError,
                "The software GPU needs tutti's kernels for the host, and {} cannot be loaded: {}. Keep {} beside "
                "libnccl.so.2 or in the folder tutti there, or set TUTTI_KERNELS_PATH to its path",
                path, why, kHostModule);
  }
  const auto kernels = object.function<const simt::HostKernelTable* (*)()>("tuttiHostKernels");
  if (kernels == nullptr) {
    return fail(ncclSystemError, "{} is not tutti's kernel module: it lacks tuttiHostKernels", path);
  }
  const simt::HostKernelTable* table = kernels();
  if (table->abiVersion != simt::kHostAbiVersion) {
    return fail(ncclSystemError, "{} has kernel interface {}, this library needs {}: install both from one build", path,
                table->abiVersion, simt::kHostAbiVersion);
  }
  // Never unloaded: its own C++ runtime would leave memory behind at every turn of load and unload.
  object.leak();
  void* module = nullptr;
  const auto result = static_cast<CUresult>(device_->driver().softgpuRegisterKernels(table, &module));
  TRY(device_->check(result, "softgpuRegisterKernels"));
  return static_cast<CUmodule>(module);
}

Result<CUmodule> KernelSet::loadFatbin(const std::string& family) {
  const device::Fatbin* fatbin = device::findFatbin(family);
  if (fatbin == nullptr) {
    const bool none = device::embeddedFatbins().empty();
    return fail(ncclInvalidUsage, "{} (kernels {} wanted on device {}). {}",
                none ? "This library was built without GPU kernels" : "This library was built without these kernels",
                family, device_->ordinal(),
                none ? "Build it where nvcc is installed, or run the program under softgpu-run"
                     : "Rebuild it without -Donly_kernels");
  }
  CUmodule module = nullptr;
  const CUresult result = device_->driver().cuModuleLoadData(&module, fatbin->begin);
  const int capability = device_->facts().computeCapability;
  TRY(checkCu(device_->driver(), result,
              CuCall{"cuModuleLoadData", device_->ordinal(), 0,
                     "kernels " + family + " (compute capability " + std::to_string(capability / 10) + "." +
                         std::to_string(capability % 10) + ")"}));
  return module;
}

}  // namespace tutti::gpu
