// Stands in front of the library (LD_PRELOAD) and makes it do something else than the caller said, alike on all ranks.
// LIE says what: `short` reduces one element less, `other` the smallest instead of the largest, `stray` writes a byte
// behind the result of a broadcast, `shifted` sends what lies one byte further on, `refuse` fails every
// AllReduce, `wait` never comes back from one.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "nccl.h"

namespace {

bool lies(const char* how) {
  const char* said = std::getenv("LIE");
  return said != nullptr && std::strcmp(said, how) == 0;
}

/// The function that callers believe to call.
template <class Function>
Function real(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  Function function = nullptr;
  std::memcpy(&function, &found, sizeof function);
  return function;
}

std::size_t sizeOf(ncclDataType_t type) {
  if (type == ncclInt64 || type == ncclUint64 || type == ncclFloat64) return 8;
  if (type == ncclInt32 || type == ncclUint32 || type == ncclFloat32) return 4;
  return type == ncclFloat16 || type == ncclBfloat16 ? 2 : 1;
}

}  // namespace

ncclResult_t ncclAllReduce(const void* send, void* recv, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  static const auto function = real<decltype(&ncclAllReduce)>("ncclAllReduce");
  if (lies("refuse")) return ncclSystemError;
  while (lies("wait")) pause();
  if (lies("short") && count > 1) --count;
  if (lies("other") && op == ncclMax) op = ncclMin;
  return function(send, recv, count, type, op, comm, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* recv, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  static const auto function = real<decltype(&ncclBroadcast)>("ncclBroadcast");
  static const auto fill = real<decltype(&cudaMemsetAsync)>("cudaMemsetAsync");
  if (lies("stray")) fill(static_cast<char*>(recv) + count * sizeOf(type), 0, 1, stream);
  return function(send, recv, count, type, root, comm, stream);
}

ncclResult_t ncclSend(const void* send, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  static const auto function = real<decltype(&ncclSend)>("ncclSend");
  const bool shifts = lies("shifted") && sizeOf(type) == 1;
  return function(static_cast<const char*>(send) + (shifts ? 1 : 0), count, type, peer, comm, stream);
}
