// The collNet table of a test plugin: collectives of one rank, which are copies. Part of test_net.cc, where versions
// come from; alone it is nothing.
#pragma once

#ifdef TEST_NET_VERSION

#define COLL_TYPE JOIN(ncclCollNet_v, TEST_NET_VERSION, _t)
#define COLL_TABLE JOIN(ncclCollNetPlugin_v, TEST_NET_VERSION, )

namespace test_net::coll {

constexpr char kConnection = 0;  // one rank needs no state: its address stands for the connection
constexpr char kRequest = 0;

inline DeviceList ownDevices;

inline DeviceList& deviceList() {
  return faults.has("one-list") ? netDevices : ownDevices;
}

void fillTable();

inline ncclResult_t start(ncclDebugLogger_t log) {
  if (logger == nullptr) logger = log;
  faults.read(kVersion);
  if (faults.strikes("coll-init")) return told("collNet init");
  setSettings("TEST_COLLNET_SETS");
  ++counts.collInits;
  fillTable();
  return ncclSuccess;
}
inline ncclResult_t init(ncclDebugLogger_t log) {
  return start(log);
}
inline ncclResult_t init(void** ctx, std::uint64_t commId, ncclDebugLogger_t log) {
  *ctx = &counts;
  counts.commId = commId;
  return start(log);
}
inline ncclResult_t finalize(void* ctx) {
  ++counts.collFinalizes;
  return ctx == &counts ? ncclSuccess : ncclInternalError;
}
inline ncclResult_t devices(int* count) {
  if (faults.strikes("coll-devices")) return told("collNet devices");
  return countDevices(deviceList(), count);
}
inline ncclResult_t getProperties(int device, PROPERTIES* props) {
  return describe(deviceList(), device, props);
}
template <class Parts>
ncclResult_t makeVDevice(int* device, Parts* parts) {
  ++counts.collFusions;
  return fuse(deviceList(), "coll-fuse", device, *parts);
}
inline ncclResult_t connect(void* handles[], int nranks, int rank, void* listener, void** connection) {
  if (nranks != 1 || rank != 0 || listener == nullptr || handles[0] == nullptr) return ncclInvalidArgument;
  *connection = const_cast<char*>(&kConnection);
  return ncclSuccess;
}
inline ncclResult_t close(void*) {
  return ncclSuccess;
}
inline ncclResult_t reduceSupport(ncclDataType_t type, ncclRedOp_t op, int* supported) {
  *supported = type == ncclFloat32 && op == ncclSum ? 1 : 0;
  return ncclSuccess;
}
inline ncclResult_t copy(void* to, const void* from, std::size_t bytes, void** request) {
  std::memcpy(to, from, bytes);
  counts.collBytes = bytes;
  *request = const_cast<char*>(&kRequest);
  return ncclSuccess;
}
inline ncclResult_t iallreduce(void*, void* send, void* recv, std::size_t count, ncclDataType_t, ncclRedOp_t, void*,
                               void*, void** request) {
  return copy(recv, send, count * sizeof(float), request);
}
inline ncclResult_t iallreduce(void*, void* send, void* recv, int count, ncclDataType_t, ncclRedOp_t, void*, void*,
                               void** request) {
  return copy(recv, send, static_cast<std::size_t>(count) * sizeof(float), request);
}
template <class Part>
ncclResult_t iallgather(void*, void* send, int parts, Part* recv, std::size_t, std::size_t offset, std::size_t window,
                        void*, void** request) {
  if (parts != 1 || recv->size != window || offset != 0) return ncclInvalidArgument;
  return copy(recv->address, send, window, request);
}
template <class Part>
ncclResult_t ireducescatter(void*, int parts, Part* send, void* recv, std::size_t, std::size_t offset,
                            std::size_t window, ncclDataType_t, ncclRedOp_t, void*, void** request) {
  if (parts != 1 || send->size != window || offset != 0) return ncclInvalidArgument;
  return copy(recv, send->address, window, request);
}
inline ncclResult_t iflush(void*, void*, int, void*, void** request) {
  *request = nullptr;
  return ncclSuccess;
}
inline ncclResult_t test(void* request, int* done, int* size) {
  *done = request == &kRequest ? 1 : 0;
  if (size != nullptr) *size = static_cast<int>(counts.collBytes);
  return ncclSuccess;
}

}  // namespace test_net::coll

extern "C" NCCL_PLUGIN_EXPORT COLL_TYPE COLL_TABLE;
COLL_TYPE COLL_TABLE = {.name = networkName, .init = test_net::coll::init};

namespace test_net::coll {

void fillTable() {
  COLL_TYPE& table = COLL_TABLE;
  if (table.devices != nullptr) return;
  table.devices = devices;
  table.getProperties = getProperties;
  table.listen = test_net::listen;
  table.connect = connect;
  table.reduceSupport = reduceSupport;
  table.regMr = test_net::regMr;
  table.deregMr = test_net::deregMr;
  table.iallreduce = iallreduce;
#if TEST_NET_VERSION >= 8
  table.iallgather = iallgather;
  table.ireducescatter = ireducescatter;
#endif
  table.iflush = iflush;
  table.test = test;
  table.closeColl = close;
  table.closeListen = test_net::closeListen;
#if TEST_NET_VERSION >= 9
  table.makeVDevice = makeVDevice;
#endif
#if TEST_NET_VERSION >= 11
  table.finalize = finalize;
#endif
}

}  // namespace test_net::coll

#endif
