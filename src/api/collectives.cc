// Collectives: each says which arguments it has; run() does the rest.
#include "api/op_checks.h"

using namespace tutti;

TUTTI_API(ncclResult_t, AllReduce,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
           cudaStream_t stream)) {
  return api::run("ncclAllReduce", comm,
                  {.func = comm::ApiFunc::AllReduce,
                   .sendbuff = sendbuff,
                   .recvbuff = recvbuff,
                   .count = count,
                   .datatype = datatype,
                   .redOp = op,
                   .root = 0,
                   .stream = stream});
}

TUTTI_API(ncclResult_t, Reduce,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,
           ncclComm_t comm, cudaStream_t stream)) {
  return api::run("ncclReduce", comm,
                  {.func = comm::ApiFunc::Reduce,
                   .sendbuff = sendbuff,
                   .recvbuff = recvbuff,
                   .count = count,
                   .datatype = datatype,
                   .redOp = op,
                   .root = root,
                   .stream = stream});
}

TUTTI_API(ncclResult_t, Broadcast,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
           cudaStream_t stream)) {
  return api::run("ncclBroadcast", comm,
                  {.func = comm::ApiFunc::Broadcast,
                   .sendbuff = sendbuff,
                   .recvbuff = recvbuff,
                   .count = count,
                   .datatype = datatype,
                   .redOp = ncclSum,
                   .root = root,
                   .stream = stream});
}

TUTTI_API(ncclResult_t, Bcast,
          (void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)) {
  return api::run("ncclBcast", comm,
                  {.func = comm::ApiFunc::Broadcast,
                   .sendbuff = buff,
                   .recvbuff = buff,
                   .count = count,
                   .datatype = datatype,
                   .redOp = ncclSum,
                   .root = root,
                   .stream = stream});
}

TUTTI_API(ncclResult_t, AllGather,
          (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm,
           cudaStream_t stream)) {
  return api::run("ncclAllGather", comm,
                  {.func = comm::ApiFunc::AllGather,
                   .sendbuff = sendbuff,
                   .recvbuff = recvbuff,
                   .count = sendcount,
                   .datatype = datatype,
                   .redOp = ncclSum,
                   .root = 0,
                   .stream = stream});
}

TUTTI_API(ncclResult_t, ReduceScatter,
          (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op,
           ncclComm_t comm, cudaStream_t stream)) {
  return api::run("ncclReduceScatter", comm,
                  {.func = comm::ApiFunc::ReduceScatter,
                   .sendbuff = sendbuff,
                   .recvbuff = recvbuff,
                   .count = recvcount,
                   .datatype = datatype,
                   .redOp = op,
                   .root = 0,
                   .stream = stream});
}

TUTTI_API(ncclResult_t, AlltoAll,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
           cudaStream_t stream)) {
  return api::run("ncclAlltoAll", comm,
                  {.func = comm::ApiFunc::AlltoAll,
                   .sendbuff = sendbuff,
                   .recvbuff = recvbuff,
                   .count = count,
                   .datatype = datatype,
                   .redOp = ncclSum,
                   .root = 0,
                   .stream = stream});
}

TUTTI_API(ncclResult_t, Gather,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
           cudaStream_t stream)) {
  return api::run("ncclGather", comm,
                  {.func = comm::ApiFunc::Gather,
                   .sendbuff = sendbuff,
                   .recvbuff = recvbuff,
                   .count = count,
                   .datatype = datatype,
                   .redOp = ncclSum,
                   .root = root,
                   .stream = stream});
}

TUTTI_API(ncclResult_t, Scatter,
          (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
           cudaStream_t stream)) {
  return api::run("ncclScatter", comm,
                  {.func = comm::ApiFunc::Scatter,
                   .sendbuff = sendbuff,
                   .recvbuff = recvbuff,
                   .count = count,
                   .datatype = datatype,
                   .redOp = ncclSum,
                   .root = root,
                   .stream = stream});
}
