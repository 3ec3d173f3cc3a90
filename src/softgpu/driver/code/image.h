// From an image to a module, for all calls that take one.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "softgpu/driver/entry.h"

namespace tutti::softgpu {

/// What a caller of the just-in-time compiler set; logs are written there.
struct JitOptions {
  unsigned count = 0;
  const CUjit_option* names = nullptr;
  void** values = nullptr;
};

/// An image in memory; `bytes` is 0 where the caller knows no size.
struct Image {
  const void* data = nullptr;
  std::size_t bytes = 0;
};

/// Reads an image for the devices of this machine. Null, `*error` and a line on stderr, once per reason, where that
/// fails.
std::shared_ptr<const PtxCode> readImage(const Image& image, const JitOptions& options, CUresult* error);
/// The bytes of a file, and a NUL behind them.
CUresult readImageFile(const char* path, std::vector<char>* content);

}  // namespace tutti::softgpu
