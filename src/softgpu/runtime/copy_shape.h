// Two- and three-dimensional copies as rows: where each row starts and how long it is.
#pragma once

#include "softgpu/runtime/call.h"

namespace tutti::softgpu {

/// `height * depth` rows of `width` bytes. Rows of a slice lie `pitch` apart, slices `slice` apart.
struct Rows {
  size_t width;
  size_t height;
  size_t depth;
};
struct Pitch {
  size_t row;
  size_t slice;
};

/// Calls `visit(rowOffsetInDestination, rowOffsetInSource, bytes)` for each row, in one piece where the rows touch.
/// Stops at the first failure and returns it.
template <class Visit>
CUresult forEachRow(const Rows& rows, const Pitch& to, const Pitch& from, Visit visit) {
  if (rows.width == 0 || rows.height == 0 || rows.depth == 0) return CUDA_SUCCESS;
  const bool dense = to.row == rows.width && from.row == rows.width;
  const size_t pieces = dense ? 1 : rows.height;
  const size_t bytes = dense ? rows.width * rows.height : rows.width;
  for (size_t z = 0; z < rows.depth; ++z) {
    for (size_t y = 0; y < pieces; ++y) {
      const CUresult result = visit(z * to.slice + y * to.row, z * from.slice + y * from.row, bytes);
      if (result != CUDA_SUCCESS) return result;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace tutti::softgpu
