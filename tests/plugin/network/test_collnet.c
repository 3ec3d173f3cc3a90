/* The collNet table of a test plugin of version TEST_NET_VERSION: collectives of one rank, which are copies. */
#include <string.h>

#include "nccl_net.h"
#include "plugin/network/test_net_faults.h"
#include "plugin/network/test_net_parts.h"
#include "plugin/network/test_net_version.h"

#define TABLE VERSIONED(ncclCollNetPlugin_v, )

/* One rank needs no state: addresses stand for a connection and a request. */
static char connectionItself, requestItself;
static size_t latestBytes;

static void fillTable(void);

#if V >= 11
static ncclResult_t init(void** context, uint64_t commId, ncclDebugLogger_t log) {
  const ncclResult_t result = beginCollNet(V, context, &commId, log);
#else
static ncclResult_t init(ncclDebugLogger_t log) {
  const ncclResult_t result = beginCollNet(V, NULL, NULL, log);
#endif
  if (result == ncclSuccess) fillTable();
  return result;
}

NCCL_PLUGIN_EXPORT extern VERSIONED(ncclCollNet_v, _t) TABLE;
VERSIONED(ncclCollNet_v, _t) TABLE = {.name = NETWORK_NAME, .init = init};

static ncclResult_t devices(int* count) {
  return countDevices(1, count);
}
static ncclResult_t getProperties(int device, Properties* props) {
  return propertiesOf(1, device, props);
}
#if V >= 9
static ncclResult_t makeVDevice(int* device, VERSIONED(ncclNetVDeviceProps_v, _t) * parts) {
  return fuseDevices(1, device, parts->ndevs, parts->devs);
}
#endif

#if V >= 11
static ncclResult_t listenAt(void* context, int device, void* handle, void** listener) {
  return listenNet(1, context, device, handle, listener);
}
#else
static ncclResult_t listenAt(int device, void* handle, void** listener) {
  return listenNet(1, NULL, device, handle, listener);
}
#endif

static ncclResult_t connectAll(void* handles[], int nranks, int rank, void* listener, void** connection) {
  TestNetRecord* record = beginRecord();
  record->collConnect.n = nranks;
  record->collConnect.rank = rank;
  record->collConnect.listener = listener;
  record->collConnect.isEmpty = *connection == NULL;
  for (int i = 0; i < nranks && i < kTestNetMost; ++i) record->collConnect.handles[i] = handles[i];
  recordIsDone();
  if (rank < 0 || rank >= nranks || listener == NULL || handles[0] == NULL) return ncclInvalidArgument;
  *connection = &connectionItself;
  return ncclSuccess;
}
static ncclResult_t closeColl(void* connection) {
  TestNetRecord* record = beginRecord();
  record->closed.collective = connection;
  recordIsDone();
  return connection == &connectionItself ? ncclSuccess : ncclInternalError;
}

static ncclResult_t reduceSupport(ncclDataType_t type, ncclRedOp_t op, int* supported) {
  TestNetRecord* record = beginRecord();
  record->collSupport.type = (int)type;
  record->collSupport.op = (int)op;
  record->collSupport.isEmpty = *supported == 0;
  recordIsDone();
  *supported = type == ncclFloat32 && op == ncclSum;
  return ncclSuccess;
}

static ncclResult_t regMr(void* comm, void* data, RegisteredSize bytes, int type, void** handle) {
  return registerMemory(comm, data, (size_t)bytes, type, handle);
}

static ncclResult_t copy(void* to, const void* from, size_t bytes, void** request) {
  static int tries;
  *request = NULL;
  if (hasFault("coll-busy") && ++tries % 2 == 1) return ncclSuccess;
  if (bytes > 0) memcpy(to, from, bytes);
  latestBytes = bytes;
  *request = &requestItself;
  return ncclSuccess;
}

#if V >= 9
static ncclResult_t iallreduce(void* comm, void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               void* sendHandle, void* recvHandle, void** request) {
#else
static ncclResult_t iallreduce(void* comm, void* send, void* recv, int count, ncclDataType_t type, ncclRedOp_t op,
                               void* sendHandle, void* recvHandle, void** request) {
#endif
  const TestCollective said = {.comm = comm,
                               .send = send,
                               .recv = recv,
                               .sendHandle = sendHandle,
                               .recvHandle = recvHandle,
                               .count = (size_t)count,
                               .type = (int)type,
                               .op = (int)op};
  TestNetRecord* record = beginRecord();
  record->allReduce = said;
  recordIsDone();
  return copy(recv, send, (size_t)count * sizeof(float), request);
}

#if V >= 8
typedef VERSIONED(ncclNetSGE_v, _t) Part;

static TestCollective inParts(int n, const Part* part, size_t bytesPerRank, size_t offset, size_t window) {
  const TestCollective said = {.parts = n,
                               .part = {.mhandle = part->mhandle, .address = part->address, .size = part->size},
                               .bytesPerRank = bytesPerRank,
                               .windowOffset = offset,
                               .windowBytes = window};
  return said;
}

static ncclResult_t iallgather(void* comm, void* send, int parts, Part* recv, size_t bytesPerRank, size_t offset,
                               size_t window, void* handle, void** request) {
  TestCollective said = inParts(parts, recv, bytesPerRank, offset, window);
  said.comm = comm;
  said.send = send;
  said.sendHandle = handle;
  TestNetRecord* record = beginRecord();
  record->allGather = said;
  recordIsDone();
  if (parts != 1 || recv->size != window) return ncclInvalidArgument;
  return copy(recv->address, send, window, request);
}

static ncclResult_t ireducescatter(void* comm, int parts, Part* send, void* recv, size_t bytesPerRank, size_t offset,
                                   size_t window, ncclDataType_t type, ncclRedOp_t op, void* handle, void** request) {
  TestCollective said = inParts(parts, send, bytesPerRank, offset, window);
  said.comm = comm;
  said.recv = recv;
  said.recvHandle = handle;
  said.type = (int)type;
  said.op = (int)op;
  TestNetRecord* record = beginRecord();
  record->reduceScatter = said;
  recordIsDone();
  if (parts != 1 || send->size != window) return ncclInvalidArgument;
  return copy(recv, send->address, window, request);
}
#endif

static ncclResult_t iflush(void* comm, void* data, int bytes, void* handle, void** request) {
  TestNetRecord* record = beginRecord();
  record->collFlush.comm = comm;
  record->collFlush.data = data;
  record->collFlush.bytes = (size_t)bytes;
  record->collFlush.handle = handle;
  record->collFlush.isEmpty = *request == NULL;
  recordIsDone();
  *request = NULL;
  return ncclSuccess;
}

static ncclResult_t test(void* request, int* done, int* size) {
  TestNetRecord* record = beginRecord();
  record->collTest.request = request;
  record->collTest.offersSizes = countZeros(size);
  recordIsDone();
  *done = request == &requestItself;
  if (size != NULL) *size = (int)latestBytes;
  return ncclSuccess;
}

static void fillTable(void) {
  if (TABLE.devices != NULL) return;
  TABLE.devices = devices;
  TABLE.getProperties = getProperties;
  TABLE.listen = listenAt;
  TABLE.connect = connectAll;
  TABLE.reduceSupport = reduceSupport;
  TABLE.regMr = regMr;
  if (hasFault("dma-buf")) TABLE.regMrDmaBuf = registerDmaBuf;
  TABLE.deregMr = deregisterMemory;
  TABLE.iallreduce = iallreduce;
#if V >= 8
  TABLE.iallgather = iallgather;
  TABLE.ireducescatter = ireducescatter;
#endif
  TABLE.iflush = iflush;
  TABLE.test = test;
  TABLE.closeColl = closeColl;
  TABLE.closeListen = closeListener;
#if V >= 9
  TABLE.makeVDevice = makeVDevice;
#endif
#if V >= 11
  TABLE.finalize = endCollNet;
#endif
}
