// Collectives: each says which arguments it has, in the order of comm::Op; run() does the rest.
#include "api/op_checks.h"

using namespace tutti;
using comm::ApiFunc;

TUTTI_API(ncclResult_t, AllReduce,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
           cudaStream_t stream)) {
  return api::run("ncclAllReduce", comm, {ApiFunc::AllReduce, sendbuff, recvbuff, count, datatype, op, 0, stream});
}

TUTTI_API(ncclResult_t, Reduce,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,
           ncclComm_t comm, cudaStream_t stream)) {
  return api::run("ncclReduce", comm, {ApiFunc::Reduce, sendbuff, recvbuff, count, datatype, op, root, stream});
}

TUTTI_API(ncclResult_t, Broadcast,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
           cudaStream_t stream)) {
  return api::run("ncclBroadcast", comm,
                  {ApiFunc::Broadcast, sendbuff, recvbuff, count, datatype, ncclSum, root, stream});
}

TUTTI_API(ncclResult_t, Bcast,
          (void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)) {
  return api::run("ncclBcast", comm, {ApiFunc::Broadcast, buff, buff, count, datatype, ncclSum, root, stream});
}

TUTTI_API(ncclResult_t, AllGather,
          (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm,
           cudaStream_t stream)) {
  return api::run("ncclAllGather", comm,
                  {ApiFunc::AllGather, sendbuff, recvbuff, sendcount, datatype, ncclSum, 0, stream});
}

TUTTI_API(ncclResult_t, ReduceScatter,
          (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op,
           ncclComm_t comm, cudaStream_t stream)) {
  return api::run("ncclReduceScatter", comm,
                  {ApiFunc::ReduceScatter, sendbuff, recvbuff, recvcount, datatype, op, 0, stream});
}

TUTTI_API(ncclResult_t, AlltoAll,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
           cudaStream_t stream)) {
  return api::run("ncclAlltoAll", comm, {ApiFunc::AlltoAll, sendbuff, recvbuff, count, datatype, ncclSum, 0, stream});
}

TUTTI_API(ncclResult_t, Gather,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
           cudaStream_t stream)) {
  return api::run("ncclGather", comm, {ApiFunc::Gather, sendbuff, recvbuff, count, datatype, ncclSum, root, stream});
}

TUTTI_API(ncclResult_t, Scatter,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
           cudaStream_t stream)) {
  return api::run("ncclScatter", comm, {ApiFunc::Scatter, sendbuff, recvbuff, count, datatype, ncclSum, root, stream});
}
