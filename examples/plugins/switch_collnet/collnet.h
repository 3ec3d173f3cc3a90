// The functions of a collNet table in terms of connection.h, without the differences between versions (tables.cc).
#pragma once

#include <cstddef>
#include <cstdint>

#include "nccl_net.h"

namespace switch_collnet::coll {

/// `context` null: of a version that has none.
ncclResult_t init(void** context, ncclDebugLogger_t log);
ncclResult_t finalize(void* context);
/// Takes out of the table what faults say it does not have. In tables.cc; init calls it.
void leaveOut();

ncclResult_t listen(void* context, int device, void* handle, void** listener);
ncclResult_t connect(void* handles[], int nodes, int node, void* listener, void** connection);
ncclResult_t closeListen(void* listener);
ncclResult_t closeColl(void* connection);

ncclResult_t reduceSupport(ncclDataType_t type, ncclRedOp_t op, int* supported);
ncclResult_t registerMemory(void* connection, void* data, std::size_t bytes, int type, void** handle);
ncclResult_t deregisterMemory(void* connection, void* handle);

ncclResult_t allReduce(void* connection, void* send, void* recv, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                       void* sendHandle, void* recvHandle, void** request);

/// Which part of all nodes' bytes a gather or scatter moves, and where the window lies.
struct Window {
  std::size_t bytesPerRank;
  std::size_t offset;
  std::size_t bytes;
  int parts;  ///< there is one, always
  void* data;
  std::size_t partBytes;
  void* handle;
};
ncclResult_t allGather(void* connection, void* send, const Window& window, void* sendHandle, void** request);
ncclResult_t reduceScatter(void* connection, const Window& window, void* recv, ncclDataType_t type, ncclRedOp_t op,
                           void* recvHandle, void** request);

ncclResult_t flush(void* connection, void* data, int bytes, void* handle, void** request);
ncclResult_t test(void* request, int* done, int* bytes);

}  // namespace switch_collnet::coll
