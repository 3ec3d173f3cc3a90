// Copies and fills.
#include <algorithm>

#include "softgpu/device/capture.h"
#include "softgpu/driver/graph_support.h"

using namespace tutti::softgpu;

namespace {

bool pageable(const void* pointer) {
  return machine().memory.find(reinterpret_cast<std::uintptr_t>(pointer)) == nullptr;
}

/// Submits and, where CUDA promises it, waits: pageable sources are staged, pageable destinations waited for.
CUresult copyAsync(Stream& stream, CopyOperation copy) {
  if (copy.width == 0 || copy.height == 0) return CUDA_SUCCESS;
  if (copy.destination == nullptr || copy.source == nullptr) return CUDA_ERROR_INVALID_VALUE;
  bool capturing = false;
  {
    std::lock_guard<std::mutex> guard(machine().lock);
    capturing = stream.capture != nullptr;
  }
  const bool wait = !capturing && pageable(copy.destination);
  if (!capturing && !wait && copy.height == 1 && pageable(copy.source)) {
    copy.staging = std::make_shared<std::vector<char>>(copy.source, copy.source + copy.width);
    copy.source = copy.staging->data();
  }
  const CUresult result = stream.submit(copy);
  return result != CUDA_SUCCESS || !wait ? result : stream.synchronize();
}

CopyOperation flat(void* destination, const void* source, std::size_t bytes) {
  return {static_cast<char*>(destination), static_cast<const char*>(source), bytes, 1, bytes, bytes, nullptr};
}

CUresult copyNow(const char* name, void* destination, const void* source, std::size_t bytes) {
  return callOnStream(name, nullptr, [&](Stream& stream) -> CUresult {
    if (bytes == 0) return CUDA_SUCCESS;
    if (destination == nullptr || source == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = stream.submit(flat(destination, source, bytes));
    return result == CUDA_SUCCESS ? stream.synchronize() : result;
  });
}

CUresult copyLater(const char* name, void* destination, const void* source, std::size_t bytes, CUstream handle) {
  return callOnStream(name, handle,
                      [&](Stream& stream) { return copyAsync(stream, flat(destination, source, bytes)); });
}

CUresult fill(const char* name, const FillOperation& operation, CUstream handle, bool wait) {
  return callOnStream(name, handle, [&](Stream& stream) -> CUresult {
    if (operation.width == 0 || operation.height == 0) return CUDA_SUCCESS;
    if (operation.destination == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (reinterpret_cast<std::uintptr_t>(operation.destination) % operation.elementBytes != 0)
      return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = stream.submit(operation);
    return result == CUDA_SUCCESS && wait ? stream.synchronize() : result;
  });
}

FillOperation row(CUdeviceptr destination, std::uint32_t value, unsigned bytes, std::size_t count) {
  return {bytesOf(destination), value, bytes, count, 1, count * bytes};
}

const void* end(CUmemorytype type, const void* host, CUdeviceptr device) {
  return type == CU_MEMORYTYPE_HOST ? host : bytesOf(device);
}

CUresult rowsOf(const CUDA_MEMCPY2D& c, CopyOperation* rows) {
  if (c.srcMemoryType == CU_MEMORYTYPE_ARRAY || c.dstMemoryType == CU_MEMORYTYPE_ARRAY)
    return unsupported("CUarray copies");
  const auto* source = static_cast<const char*>(end(c.srcMemoryType, c.srcHost, c.srcDevice));
  auto* destination = static_cast<char*>(const_cast<void*>(end(c.dstMemoryType, c.dstHost, c.dstDevice)));
  const std::size_t sourcePitch = c.srcPitch == 0 ? c.WidthInBytes : c.srcPitch;
  const std::size_t destinationPitch = c.dstPitch == 0 ? c.WidthInBytes : c.dstPitch;
  if (sourcePitch < c.WidthInBytes || destinationPitch < c.WidthInBytes) return CUDA_ERROR_INVALID_VALUE;
  *rows = {destination + c.dstY * destinationPitch + c.dstXInBytes,
           source + c.srcY * sourcePitch + c.srcXInBytes,
           c.WidthInBytes,
           c.Height,
           destinationPitch,
           sourcePitch,
           nullptr};
  return CUDA_SUCCESS;
}

/// A copy whose parameters are of two or three dimensions.
template <class Parameters>
CUresult copyRows(const char* name, const Parameters* c, CUstream handle, bool wait) {
  return callOnStream(name, handle, [&](Stream& stream) -> CUresult {
    if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CopyOperation copy;
    CUresult result = rowsOf(*c, &copy);
    if (result == CUDA_SUCCESS) result = copyAsync(stream, copy);
    return result == CUDA_SUCCESS && wait ? stream.synchronize() : result;
  });
}

}  // namespace

CUresult tutti::softgpu::rowsOf(const CUDA_MEMCPY3D& c, CopyOperation* rows) {
  CUDA_MEMCPY2D plane = {};
  plane.srcXInBytes = c.srcXInBytes;
  plane.srcY = c.srcY + c.srcZ * c.srcHeight;
  plane.srcMemoryType = c.srcMemoryType;
  plane.srcHost = c.srcHost;
  plane.srcDevice = c.srcDevice;
  plane.srcPitch = c.srcPitch;
  plane.dstXInBytes = c.dstXInBytes;
  plane.dstY = c.dstY + c.dstZ * c.dstHeight;
  plane.dstMemoryType = c.dstMemoryType;
  plane.dstHost = c.dstHost;
  plane.dstDevice = c.dstDevice;
  plane.dstPitch = c.dstPitch;
  plane.WidthInBytes = c.WidthInBytes;
  plane.Height = c.Height;
  if (c.Depth > 1) {
    const bool even = (c.srcHeight == c.Height || c.srcHeight == 0) && (c.dstHeight == c.Height || c.dstHeight == 0);
    if (!even) return unsupported("a 3D copy of a part of its planes");
    plane.Height = c.Height * c.Depth;
  }
  return ::rowsOf(plane, rows);
}

extern "C" {

CUresult cuMemcpy(CUdeviceptr destination, CUdeviceptr source, size_t bytes) {
  return copyNow("cuMemcpy", bytesOf(destination), bytesOf(source), bytes);
}
CUresult cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return copyLater("cuMemcpyAsync", bytesOf(destination), bytesOf(source), bytes, stream);
}
CUresult cuMemcpyPeer(CUdeviceptr destination, CUcontext, CUdeviceptr source, CUcontext, size_t bytes) {
  return copyNow("cuMemcpyPeer", bytesOf(destination), bytesOf(source), bytes);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr destination, CUcontext, CUdeviceptr source, CUcontext, size_t bytes,
                           CUstream stream) {
  return copyLater("cuMemcpyPeerAsync", bytesOf(destination), bytesOf(source), bytes, stream);
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr destination, const void* source, size_t bytes) {
  return copyNow("cuMemcpyHtoD", bytesOf(destination), source, bytes);
}
CUresult cuMemcpyDtoH_v2(void* destination, CUdeviceptr source, size_t bytes) {
  return copyNow("cuMemcpyDtoH", destination, bytesOf(source), bytes);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr destination, CUdeviceptr source, size_t bytes) {
  return copyNow("cuMemcpyDtoD", bytesOf(destination), bytesOf(source), bytes);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr destination, const void* source, size_t bytes, CUstream stream) {
  return copyLater("cuMemcpyHtoDAsync", bytesOf(destination), source, bytes, stream);
}
CUresult cuMemcpyDtoHAsync_v2(void* destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return copyLater("cuMemcpyDtoHAsync", destination, bytesOf(source), bytes, stream);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return copyLater("cuMemcpyDtoDAsync", bytesOf(destination), bytesOf(source), bytes, stream);
}
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  return copyRows("cuMemcpy2D", copy, nullptr, true);
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  return copyRows("cuMemcpy2DUnaligned", copy, nullptr, true);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return copyRows("cuMemcpy2DAsync", copy, stream, false);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
  return copyRows("cuMemcpy3D", copy, nullptr, true);
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return copyRows("cuMemcpy3DAsync", copy, stream, false);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* destinations, CUdeviceptr* sources, size_t* sizes, size_t count,
                               CUmemcpyAttributes*, size_t*, size_t, CUstream handle) {
  return callOnStream("cuMemcpyBatchAsync", handle, [&](Stream& stream) -> CUresult {
    if (destinations == nullptr || sources == nullptr || sizes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
      const CUresult result = copyAsync(stream, flat(bytesOf(destinations[i]), bytesOf(sources[i]), sizes[i]));
      if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemsetD8_v2(CUdeviceptr destination, unsigned char value, size_t count) {
  return fill("cuMemsetD8", row(destination, value, 1, count), nullptr, true);
}
CUresult cuMemsetD16_v2(CUdeviceptr destination, unsigned short value, size_t count) {
  return fill("cuMemsetD16", row(destination, value, 2, count), nullptr, true);
}
CUresult cuMemsetD32_v2(CUdeviceptr destination, unsigned int value, size_t count) {
  return fill("cuMemsetD32", row(destination, value, 4, count), nullptr, true);
}
CUresult cuMemsetD8Async(CUdeviceptr destination, unsigned char value, size_t count, CUstream stream) {
  return fill("cuMemsetD8Async", row(destination, value, 1, count), stream, false);
}
CUresult cuMemsetD16Async(CUdeviceptr destination, unsigned short value, size_t count, CUstream stream) {
  return fill("cuMemsetD16Async", row(destination, value, 2, count), stream, false);
}
CUresult cuMemsetD32Async(CUdeviceptr destination, unsigned int value, size_t count, CUstream stream) {
  return fill("cuMemsetD32Async", row(destination, value, 4, count), stream, false);
}
CUresult cuMemsetD2D8_v2(CUdeviceptr destination, size_t pitch, unsigned char value, size_t width, size_t height) {
  return fill("cuMemsetD2D8", {bytesOf(destination), value, 1, width, height, pitch}, nullptr, true);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr destination, size_t pitch, unsigned short value, size_t width, size_t height) {
  return fill("cuMemsetD2D16", {bytesOf(destination), value, 2, width, height, pitch}, nullptr, true);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr destination, size_t pitch, unsigned int value, size_t width, size_t height) {
  return fill("cuMemsetD2D32", {bytesOf(destination), value, 4, width, height, pitch}, nullptr, true);
}
CUresult cuMemsetD2D8Async(CUdeviceptr destination, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream stream) {
  return fill("cuMemsetD2D8Async", {bytesOf(destination), value, 1, width, height, pitch}, stream, false);
}
CUresult cuMemsetD2D16Async(CUdeviceptr destination, size_t pitch, unsigned short value, size_t width, size_t height,
                            CUstream stream) {
  return fill("cuMemsetD2D16Async", {bytesOf(destination), value, 2, width, height, pitch}, stream, false);
}
CUresult cuMemsetD2D32Async(CUdeviceptr destination, size_t pitch, unsigned int value, size_t width, size_t height,
                            CUstream stream) {
  return fill("cuMemsetD2D32Async", {bytesOf(destination), value, 4, width, height, pitch}, stream, false);
}

}  // extern "C"
