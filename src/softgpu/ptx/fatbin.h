// Images as programs hold them: PTX text, fatbins, and the wrapper that nvcc puts around those.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tutti::softgpu::ptx {

/// What cannot be read, in a sentence.
struct ImageError {
  std::string what;
};

/// The PTX of an image: the text itself or, of the texts in a fatbin, the newest that a device of this capability (90
/// for 9.0) runs. `bytes` is 0 where the caller knows none. Throws ImageError.
std::string ptxOf(const void* image, std::size_t bytes, std::uint32_t capability);

}  // namespace tutti::softgpu::ptx
