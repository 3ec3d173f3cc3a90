// Collectives with options of their own: each says which arguments it has, as in collectives.cc; run() does the rest.
#include "api/op_checks.h"

using namespace tutti;
using comm::ApiFunc;

TUTTI_API(ncclResult_t, AllReduceConfig,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
           cudaStream_t stream, const ncclCollConfig_t* config)) {
  return api::run("ncclAllReduceConfig", comm, {ApiFunc::AllReduce, sendbuff, recvbuff, count, datatype, op, 0, stream},
                  config);
}

TUTTI_API(ncclResult_t, ReduceConfig,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,
           ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config)) {
  return api::run("ncclReduceConfig", comm, {ApiFunc::Reduce, sendbuff, recvbuff, count, datatype, op, root, stream},
                  config);
}

TUTTI_API(ncclResult_t, BroadcastConfig,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
           cudaStream_t stream, const ncclCollConfig_t* config)) {
  return api::run("ncclBroadcastConfig", comm,
                  {ApiFunc::Broadcast, sendbuff, recvbuff, count, datatype, ncclSum, root, stream}, config);
}

TUTTI_API(ncclResult_t, AllGatherConfig,
          (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm,
           cudaStream_t stream, const ncclCollConfig_t* config)) {
  return api::run("ncclAllGatherConfig", comm,
                  {ApiFunc::AllGather, sendbuff, recvbuff, sendcount, datatype, ncclSum, 0, stream}, config);
}

TUTTI_API(ncclResult_t, ReduceScatterConfig,
          (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op,
           ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config)) {
  return api::run("ncclReduceScatterConfig", comm,
                  {ApiFunc::ReduceScatter, sendbuff, recvbuff, recvcount, datatype, op, 0, stream}, config);
}

TUTTI_API(ncclResult_t, AlltoAllConfig,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
           cudaStream_t stream, const ncclCollConfig_t* config)) {
  return api::run("ncclAlltoAllConfig", comm,
                  {ApiFunc::AlltoAll, sendbuff, recvbuff, count, datatype, ncclSum, 0, stream}, config);
}

TUTTI_API(ncclResult_t, GatherConfig,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
           cudaStream_t stream, const ncclCollConfig_t* config)) {
  return api::run("ncclGatherConfig", comm,
                  {ApiFunc::Gather, sendbuff, recvbuff, count, datatype, ncclSum, root, stream}, config);
}

TUTTI_API(ncclResult_t, ScatterConfig,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
           cudaStream_t stream, const ncclCollConfig_t* config)) {
  return api::run("ncclScatterConfig", comm,
                  {ApiFunc::Scatter, sendbuff, recvbuff, count, datatype, ncclSum, root, stream}, config);
}
