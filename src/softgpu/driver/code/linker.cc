// The just-in-time linker. One input needs no linking: it becomes the image as it is.
#include <cstring>
#include <string>

#include "softgpu/device/registry.h"
#include "softgpu/driver/code/image.h"
#include "softgpu/say.h"

using namespace tutti::softgpu;

namespace {

/// A CUlinkState. Whoever made it keeps what the options point at until it is destroyed.
struct Linker {
  JitOptions options;
  std::vector<std::vector<char>> inputs;  ///< each with a NUL behind it
};

Registry<Linker>& linkers() {
  static auto& all = *new Registry<Linker>;
  return all;
}

template <class Body>
CUresult withLinker(const char* name, CUlinkState handle, Body&& body) {
  return call(name, [&]() -> CUresult {
    const auto linker = linkers().find(handle);
    return linker == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(*linker);
  });
}

CUresult checkType(CUjitInputType type) {
  if (type == CU_JIT_INPUT_PTX || type == CU_JIT_INPUT_FATBINARY) return CUDA_SUCCESS;
  say("cuLinkAddData: only PTX is understood, and fatbins that hold it");
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

extern "C" {

CUresult cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values, CUlinkState* result) {
  return call("cuLinkCreate", [&]() -> CUresult {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto linker = std::make_shared<Linker>();
    linker->options = {count, options, values};
    *result = reinterpret_cast<CUlinkState>(linkers().add(std::move(linker)));
    return CUDA_SUCCESS;
  });
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size, const char*, unsigned int,
                          CUjit_option*, void**) {
  return withLinker("cuLinkAddData", state, [&](Linker& linker) -> CUresult {
    if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = checkType(type); error != CUDA_SUCCESS) return error;
    const auto* bytes = static_cast<const char*>(data);
    linker.inputs.emplace_back(bytes, bytes + size);
    linker.inputs.back().push_back('\0');
    return CUDA_SUCCESS;
  });
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned int, CUjit_option*,
                          void**) {
  return withLinker("cuLinkAddFile", state, [&](Linker& linker) -> CUresult {
    if (const CUresult error = checkType(type); error != CUDA_SUCCESS) return error;
    std::vector<char> content;
    if (const CUresult error = readImageFile(path, &content); error != CUDA_SUCCESS) return error;
    linker.inputs.push_back(std::move(content));
    return CUDA_SUCCESS;
  });
}

CUresult cuLinkComplete(CUlinkState state, void** image, size_t* bytes) {
  return withLinker("cuLinkComplete", state, [&](Linker& linker) -> CUresult {
    if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (linker.inputs.size() != 1) {
      say("cuLinkComplete: there are %zu inputs; the software GPU links no more than one. Compile to one PTX",
          linker.inputs.size());
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    std::vector<char>& input = linker.inputs.front();
    CUresult error = CUDA_SUCCESS;
    if (readImage({input.data(), input.size() - 1}, linker.options, &error) == nullptr) return error;
    *image = input.data();
    if (bytes != nullptr) *bytes = input.size();
    return CUDA_SUCCESS;
  });
}

CUresult cuLinkDestroy(CUlinkState state) {
  return call("cuLinkDestroy", [&]() -> CUresult {
    return linkers().take(state) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  });
}

}  // extern "C"
