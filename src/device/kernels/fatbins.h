// The GPU kernels as data inside the library.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace tutti::device {

/// One fatbin: what cuModuleLoadData takes. Lives as long as the library.
struct Fatbin {
  const char* family;  ///< as kernelFamily() names it
  const std::byte* begin;
  const std::byte* end;
};

/// All of them; empty when tutti was built without nvcc.
std::span<const Fatbin> embeddedFatbins();

/// The fatbin of a family, nullptr when it was not built.
inline const Fatbin* findFatbin(std::string_view family) {
  for (const Fatbin& fatbin : embeddedFatbins()) {
    if (fatbin.family == family) return &fatbin;
  }
  return nullptr;
}

}  // namespace tutti::device
