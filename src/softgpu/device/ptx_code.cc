#include "softgpu/device/ptx_code.h"

#include <dlfcn.h>

#include <array>
#include <cstring>
#include <string_view>

#include "softgpu/device/machine.h"

namespace tutti::softgpu {

/// The functions of libsoftgpu-ptx.so, or why they are not there.
struct PtxLibrary {
  decltype(&softgpuPtxLoad) load = nullptr;
  decltype(&softgpuPtxKernel) kernel = nullptr;
  decltype(&softgpuPtxUnload) unload = nullptr;
  std::string missing;
};

namespace {

using Reason = std::array<char, 1024>;

std::string pathBesideThis() {
  constexpr const char* kName = "libsoftgpu-ptx.so";
  Dl_info info = {};
  static const int here = 0;
  if (::dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return kName;
  const std::string own = info.dli_fname;
  const std::size_t slash = own.rfind('/');
  return slash == std::string::npos ? kName : own.substr(0, slash + 1) + kName;
}

PtxLibrary* openLibrary() {
  auto* library = new PtxLibrary;  // never closed: code that it made may run to the end of the process
  const std::string& wanted = machine().settings.ptxLibrary;
  const std::string path = wanted.empty() ? pathBesideThis() : wanted;
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* error = ::dlerror();
    library->missing = std::string("GPU code needs libsoftgpu-ptx.so, which is not there (") +
                       (error == nullptr ? path : error) +
                       "); build it where LLVM's development files are installed, or name it in SOFTGPU_PTX_LIBRARY";
    return library;
  }
  library->load = reinterpret_cast<decltype(library->load)>(::dlsym(handle, "softgpuPtxLoad"));
  library->kernel = reinterpret_cast<decltype(library->kernel)>(::dlsym(handle, "softgpuPtxKernel"));
  library->unload = reinterpret_cast<decltype(library->unload)>(::dlsym(handle, "softgpuPtxUnload"));
  if (library->load == nullptr || library->kernel == nullptr || library->unload == nullptr) {
    library->missing = path + " lacks functions: take it from the build that libcuda.so.1 is from";
  }
  return library;
}

const PtxLibrary& theLibrary() {
  static const PtxLibrary& library = *openLibrary();
  return library;
}

/// Whether it is text, and not a fatbin, the wrapper around one, or a cubin.
bool isText(const void* image) {
  constexpr std::string_view kFatbin = "\x50\xed\x55\xba";
  constexpr std::string_view kWrapper = "\xb1\x43\x62\x46";
  constexpr std::string_view kElf =
      "\x7f"
      "ELF";
  const auto* text = static_cast<const char*>(image);
  for (const std::string_view magic : {kFatbin, kWrapper, kElf}) {
    if (std::strncmp(text, magic.data(), magic.size()) == 0) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<PtxCode> PtxCode::read(const void* image, std::size_t bytes, int capability, CodeFailure* failure) {
  const PtxLibrary& library = theLibrary();
  if (!library.missing.empty()) {
    *failure = {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, library.missing};
    return nullptr;
  }
  const Settings& settings = machine().settings;
  const PtxOptions options = {static_cast<std::uint32_t>(capability), settings.ptxCache.c_str(),
                              settings.weakSeed.has_value()};
  Reason why = {};
  const PtxProgram* program = library.load(kPtxAbiVersion, image, bytes, &options, why.data(), why.size());
  if (program == nullptr) {
    *failure = {isText(image) ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_NO_BINARY_FOR_GPU, why.data()};
    return nullptr;
  }
  return std::make_shared<PtxCode>(library, *program);
}

PtxCode::~PtxCode() {
  library_.unload(&program_);
}

const simt::HostKernel* PtxCode::kernel(std::uint32_t index, std::string* why) const {
  Reason reason = {};
  const simt::HostKernel* kernel = library_.kernel(&program_, index, reason.data(), reason.size());
  if (kernel == nullptr) *why = reason.data();
  return kernel;
}

}  // namespace tutti::softgpu
