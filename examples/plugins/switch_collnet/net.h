// The network beside the collNet: messages from node to node over TCP. A library takes a collNet only from a plugin
// that has a net of the same name; a plugin for real hardware has a better one than this.
#pragma once

#include <cstddef>

#include "nccl_net.h"

namespace switch_collnet::net {

ncclResult_t listen(int device, void* handle, void** listener);
/// Null: not yet, call again.
ncclResult_t connect(int device, void* handle, void** connection);
ncclResult_t accept(void* listener, void** connection);

ncclResult_t registerMemory(int type, void** handle);
/// Null: there is no room for it now.
ncclResult_t isend(void* connection, void* data, std::size_t bytes, void** request);
ncclResult_t irecv(void* connection, void* data, std::size_t room, void** request);
ncclResult_t test(void* request, int* done, int* sizes);

ncclResult_t closeListen(void* listener);
ncclResult_t closeConnection(void* connection);

}  // namespace switch_collnet::net
