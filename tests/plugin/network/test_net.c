/* The net table of a test plugin of version TEST_NET_VERSION (test_net.h): what was said in that version's way becomes
 * calls of test_net_parts.h. */
#include <stddef.h>
#include <string.h>

#include "nccl_net.h"
#include "plugin/network/test_net_faults.h"
#include "plugin/network/test_net_parts.h"
#include "plugin/network/test_net_version.h"

#define TABLE VERSIONED(ncclNetPlugin_v, )

static void fillTable(void);

#if V >= 11
static ncclResult_t init(void** context, uint64_t commId, VERSIONED(ncclNetCommConfig_v, _t) * config,
                         ncclDebugLogger_t log, ncclProfilerCallback_t profile) {
  const ncclResult_t result = beginNet(V, context, &commId, &config->trafficClass, log, profile);
#elif V == 10
static ncclResult_t init(ncclDebugLogger_t log, ncclProfilerCallback_t profile) {
  const ncclResult_t result = beginNet(V, NULL, NULL, NULL, log, profile);
#else
static ncclResult_t init(ncclDebugLogger_t log) {
  const ncclResult_t result = beginNet(V, NULL, NULL, NULL, log, NULL);
#endif
  if (result == ncclSuccess) fillTable();
  return result;
}

/* The rest of the table is filled by init(): nobody may look at it before. */
NCCL_PLUGIN_EXPORT extern VERSIONED(ncclNet_v, _t) TABLE;
VERSIONED(ncclNet_v, _t) TABLE = {.name = NETWORK_NAME, .init = init};

static ncclResult_t devices(int* count) {
  return countDevices(0, count);
}

static int isBlank(const Properties* props) {
  Properties blank;
  memset(&blank, 0, sizeof blank);
#if V >= 12
  blank.railId = blank.planeId = NCCL_NET_ID_UNDEF;
#endif
  return memcmp(&blank, props, sizeof blank) == 0;
}

ncclResult_t propertiesOf(int ofCollNet, int device, Properties* props) {
  TestDevice said;
  const ncclResult_t result = describeDevice(ofCollNet, device, isBlank(props), V, &said);
  if (result != ncclSuccess) return result;
  const ncclNetProperties_v12_t* from = &said.props;
  props->name = from->name;
  props->pciPath = from->pciPath;
  props->guid = from->guid;
  props->ptrSupport = from->ptrSupport;
  props->speed = from->speed;
  props->port = from->port;
  props->latency = from->latency;
  props->maxComms = from->maxComms;
  props->maxRecvs = from->maxRecvs;
#if V >= 9
  props->maxP2pBytes = from->maxP2pBytes; /* without these a device cannot be used */
  props->maxCollBytes = from->maxCollBytes;
#endif
  if (!said.isFull) return ncclSuccess;
#if V >= 7
  props->netDeviceType = from->netDeviceType;
  props->netDeviceVersion = from->netDeviceVersion;
#endif
#if V >= 8
  props->regIsGlobal = from->regIsGlobal;
#endif
#if V >= 9
  props->forceFlush = from->forceFlush;
  props->vProps.ndevs = from->vProps.ndevs;
  memcpy(props->vProps.devs, from->vProps.devs, sizeof props->vProps.devs);
#endif
#if V >= 11
  props->maxMultiRequestSize = from->maxMultiRequestSize;
#endif
#if V >= 12
  props->railId = from->railId;
  props->planeId = from->planeId;
#endif
  return ncclSuccess;
}
static ncclResult_t getProperties(int device, Properties* props) {
  return propertiesOf(0, device, props);
}

#if V >= 9
static ncclResult_t makeVDevice(int* device, VERSIONED(ncclNetVDeviceProps_v, _t) * parts) {
  return fuseDevices(0, device, parts->ndevs, parts->devs);
}
#endif

#if V >= 11
static ncclResult_t listenAt(void* context, int device, void* handle, void** listener) {
  return listenNet(0, context, device, handle, listener);
}
static ncclResult_t connectTo(void* context, int device, void* handle, void** connection,
                              ncclNetDeviceHandle_t** kernels) {
  return connectNet(context, device, kNoTrafficClass, handle, connection, kernels);
}
#else
static ncclResult_t listenAt(int device, void* handle, void** listener) {
  return listenNet(0, NULL, device, handle, listener);
}
#if V == 10
static ncclResult_t connectTo(int device, ncclNetCommConfig_v10_t* config, void* handle, void** connection,
                              ncclNetDeviceHandle_t** kernels) {
  return connectNet(NULL, device, config->trafficClass, handle, connection, kernels);
}
#elif V >= 7
static ncclResult_t connectTo(int device, void* handle, void** connection, ncclNetDeviceHandle_t** kernels) {
  return connectNet(NULL, device, kNoTrafficClass, handle, connection, kernels);
}
#else
static ncclResult_t connectTo(int device, void* handle, void** connection) {
  return connectNet(NULL, device, kNoTrafficClass, handle, connection, NULL);
}
#endif
#endif

#if V >= 7
static ncclResult_t acceptFrom(void* listener, void** connection, ncclNetDeviceHandle_t** kernels) {
  return acceptNet(listener, connection, kernels);
}
static ncclResult_t getDeviceMr(void* comm, void* handle, void** deviceHandle) {
  (void)comm, (void)handle, (void)deviceHandle;
  return countOffloadCall();
}
static ncclResult_t irecvConsumed(void* comm, int n, void* request) {
  (void)comm, (void)n, (void)request;
  return countOffloadCall();
}
#else
static ncclResult_t acceptFrom(void* listener, void** connection) {
  return acceptNet(listener, connection, NULL);
}
#endif

static ncclResult_t regMr(void* comm, void* data, RegisteredSize bytes, int type, void** handle) {
  return registerMemory(comm, data, (size_t)bytes, type, handle);
}

#if V >= 10
static ncclResult_t isend(void* comm, void* data, size_t bytes, int tag, void* handle, void* event, void** request) {
  return sendMessage(comm, data, bytes, tag, handle, event, request);
}
static ncclResult_t irecv(void* comm, int n, void** data, size_t* sizes, int* tags, void** handles, void** events,
                          void** request) {
  return receiveMessages(comm, n, data, sizes, tags, handles, events, request);
}
#else
static ncclResult_t isend(void* comm, void* data, MessageSize bytes, int tag, void* handle, void** request) {
  return sendMessage(comm, data, (size_t)bytes, tag, handle, NULL, request);
}
static ncclResult_t irecv(void* comm, int n, void** data, MessageSize* sizes, int* tags, void** handles,
                          void** request) {
  size_t wide[kTestNetMost] = {0};
  for (int i = 0; i < n && i < kTestNetMost; ++i) wide[i] = (size_t)sizes[i];
  return receiveMessages(comm, n, data, wide, tags, handles, NULL, request);
}
#endif

/* Once: threads of an earlier communicator may be reading it. */
static void fillTable(void) {
  if (TABLE.devices != NULL) return;
  TABLE.devices = devices;
  TABLE.getProperties = getProperties;
  TABLE.listen = listenAt;
  TABLE.connect = connectTo;
  TABLE.accept = acceptFrom;
  TABLE.regMr = regMr;
  if (hasFault("dma-buf")) TABLE.regMrDmaBuf = registerDmaBuf;
  TABLE.deregMr = deregisterMemory;
  if (!hasFault("missing")) TABLE.isend = isend;
  TABLE.irecv = irecv;
  TABLE.iflush = flushMessages;
  TABLE.test = testRequest;
  TABLE.closeSend = TABLE.closeRecv = closeConnection;
  TABLE.closeListen = closeListener;
#if V >= 7
  TABLE.getDeviceMr = getDeviceMr;
  TABLE.irecvConsumed = irecvConsumed;
#endif
#if V >= 9
  TABLE.makeVDevice = makeVDevice;
#endif
#if V >= 11
  TABLE.finalize = endNet;
#endif
}
