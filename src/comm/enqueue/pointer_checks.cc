#include "comm/enqueue/pointer_checks.h"

#include <fmt/format.h>

#include <string_view>

#include "base/log.h"
#include "comm/launch/device_pool.h"
#include "comm/state/communicator.h"
#include "gpu/context.h"

namespace tutti::comm {

namespace {

struct Used {
  bool send = true;
  bool recv = true;
};

/// What this rank reads and writes: rooted functions leave one buffer untouched off the root, messages have only one.
Used buffersUsed(const Op& op, int rank) {
  const bool root = op.root == rank;
  switch (op.func) {
    case ApiFunc::Send:
      return {op.count > 0, false};
    case ApiFunc::Recv:
      return {false, op.count > 0};
    case ApiFunc::Broadcast:
    case ApiFunc::Scatter:
      return {root, true};
    case ApiFunc::Reduce:
    case ApiFunc::Gather:
      return {true, root};
    case ApiFunc::AllReduce:
    case ApiFunc::AllGather:
    case ApiFunc::ReduceScatter:
    case ApiFunc::AlltoAll:
      return {};
  }
  return {};
}

Status checkOne(const ncclComm& comm, std::string_view label, std::string_view what, const void* pointer) {
  const gpu::Device& device = *comm.parts.device->device;
  const gpu::Driver& driver = device.driver();
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);
  unsigned type = 0;
  int owner = -1;
  if (driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS || type == 0 ||
      driver.cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) != CUDA_SUCCESS) {
    return fail(ncclInvalidArgument,
                "{} : {} {} is not a valid pointer: CUDA does not know it. Allocate with cudaMalloc or "
                "ncclMemAlloc ({}; checked because of NCCL_CHECK_POINTERS or NCCL_CHECK_MODE)",
                label, what, fmt::ptr(pointer), describeComm(comm));
  }
  if (type != CU_MEMORYTYPE_DEVICE || owner == device.ordinal()) return {};
  return fail(ncclInvalidArgument,
              "{} : {} {} is memory of device {}, but the communicator ({}) works on device {}. Call "
              "cudaSetDevice before allocating",
              label, what, fmt::ptr(pointer), owner, describeComm(comm), device.ordinal());
}

}  // namespace

Status checkPointers(const ncclComm& comm, const Op& op) {
  if (!comm.options.checkPointers) return {};
  const Used used = buffersUsed(op, comm.identity.rank);
  ASSIGN(const gpu::ContextGuard context, comm.parts.device->device->enter());
  if (used.send) TRY(checkOne(comm, apiFuncName(op.func), "sendbuff", op.sendbuff));
  if (used.recv) TRY(checkOne(comm, apiFuncName(op.func), "recvbuff", op.recvbuff));
  return {};
}

}  // namespace tutti::comm
