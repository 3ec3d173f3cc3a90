// What the library sees: the tables of functions of one version of the interface, 12 unless SWITCH_COLLNET_VERSION says
// another. Plugins are written for the newest version; the others are here for those who test older plugins. All are
// made of this source: a table takes of each function the overload that has its version's signature (older_versions.h).
#include "collnet.h"
#include "net.h"
#include "settings.h"

#ifndef SWITCH_COLLNET_VERSION
#define SWITCH_COLLNET_VERSION 12
#elif SWITCH_COLLNET_VERSION < 12
#include "older_versions.h"
#endif

#define JOIN_(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define NET_TYPE JOIN(ncclNet_v, SWITCH_COLLNET_VERSION, _t)
#define NET_TABLE JOIN(ncclNetPlugin_v, SWITCH_COLLNET_VERSION, )
#define COLL_TYPE JOIN(ncclCollNet_v, SWITCH_COLLNET_VERSION, _t)
#define COLL_TABLE JOIN(ncclCollNetPlugin_v, SWITCH_COLLNET_VERSION, )
#define PROPERTIES JOIN(ncclNetProperties_v, SWITCH_COLLNET_VERSION, _t)

// ---- the network

namespace switch_collnet::of_net {
namespace {

inline ncclResult_t init(ncclDebugLogger_t log) {
  const std::string why = start(log);
  return why.empty() ? ncclSuccess : failed(ncclInvalidUsage, "init", why);
}
inline ncclResult_t init(void** context, std::uint64_t, ncclNetCommConfig_v11_t*, ncclDebugLogger_t log,
                         ncclProfilerCallback_t) {
  *context = nullptr;  // this network keeps nothing for a communicator
  return init(log);
}
inline ncclResult_t finalize(void*) {
  return ncclSuccess;
}
inline ncclResult_t devices(int* count) {
  *count = static_cast<int>(switch_collnet::devices().all.size());
  return ncclSuccess;
}
inline ncclResult_t getProperties(int device, PROPERTIES* properties) {
  return describeDevice(device, static_cast<int>(switch_collnet::devices().all.size()), properties);
}

inline ncclResult_t listen(void*, int device, void* handle, void** listener) {
  return net::listen(device, handle, listener);
}
inline ncclResult_t connect(void*, int device, void* handle, void** connection, ncclNetDeviceHandle_t**) {
  return net::connect(device, handle, connection);
}
inline ncclResult_t accept(void* listener, void** connection, ncclNetDeviceHandle_t**) {
  return net::accept(listener, connection);
}

template <class Size>
ncclResult_t regMr(void*, void*, Size, int type, void** handle) {
  return net::registerMemory(type, handle);
}
template <class Size>
ncclResult_t isend(void* connection, void* data, Size bytes, int, void*, void*, void** request) {
  return net::isend(connection, data, static_cast<std::size_t>(bytes), request);
}
/// maxRecvs is 1, so there is no other receive than the first.
template <class Size>
ncclResult_t irecv(void* connection, int, void** data, Size* sizes, int*, void**, void**, void** request) {
  return net::irecv(connection, data[0], static_cast<std::size_t>(sizes[0]), request);
}
inline ncclResult_t deregMr(void*, void*) {
  return ncclSuccess;
}
inline ncclResult_t iflush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;  // the processor has written the data: everybody sees it
  return ncclSuccess;
}

}  // namespace
}  // namespace switch_collnet::of_net

// ---- the collNet

namespace switch_collnet::of_coll {
namespace {

inline ncclResult_t init(void** context, std::uint64_t, ncclDebugLogger_t log) {
  return coll::init(context, log);
}
inline ncclResult_t devices(int* count) {
  *count = 0;
  Settings settings;
  if (const ncclResult_t code = mayCall("devices", "refuse-devices", settings); code != ncclSuccess) return code;
  *count = switch_collnet::devices().coll;
  return ncclSuccess;
}
inline ncclResult_t getProperties(int device, PROPERTIES* properties) {
  Settings settings;
  const ncclResult_t code = mayCall("getProperties", "refuse-properties", settings);
  return code != ncclSuccess ? code : describeDevice(device, switch_collnet::devices().coll, properties);
}
inline ncclResult_t listen(void* context, int device, void* handle, void** listener) {
  return coll::listen(context, device, handle, listener);
}
template <class Size>
ncclResult_t regMr(void* connection, void* data, Size bytes, int type, void** handle) {
  return coll::registerMemory(connection, data, static_cast<std::size_t>(bytes), type, handle);
}

/// Versions 6 to 8 count with an int.
template <class Count>
ncclResult_t iallreduce(void* connection, void* send, void* recv, Count count, ncclDataType_t type, ncclRedOp_t op,
                        void* sendHandle, void* recvHandle, void** request) {
  const std::size_t elements = count > 0 ? static_cast<std::size_t>(count) : 0;  // nothing is refused
  return coll::allReduce(connection, send, recv, elements, type, op, sendHandle, recvHandle, request);
}

#if SWITCH_COLLNET_VERSION >= 8
/// A part of version 8 has 32 bits for its size.
template <class Part>
coll::Window windowOf(int parts, Part* part, std::size_t bytesPerRank, std::size_t offset, std::size_t bytes) {
  if (parts != 1) return {bytesPerRank, offset, bytes, parts, nullptr, 0, nullptr};
  return {bytesPerRank, offset, bytes, parts, part->address, part->size, part->mhandle};
}
template <class Part>
ncclResult_t iallgather(void* connection, void* send, int parts, Part* recv, std::size_t bytesPerRank,
                        std::size_t offset, std::size_t bytes, void* sendHandle, void** request) {
  return coll::allGather(connection, send, windowOf(parts, recv, bytesPerRank, offset, bytes), sendHandle, request);
}
template <class Part>
ncclResult_t ireducescatter(void* connection, int parts, Part* send, void* recv, std::size_t bytesPerRank,
                            std::size_t offset, std::size_t bytes, ncclDataType_t type, ncclRedOp_t op,
                            void* recvHandle, void** request) {
  return coll::reduceScatter(connection, windowOf(parts, send, bytesPerRank, offset, bytes), recv, type, op, recvHandle,
                             request);
}
#endif

}  // namespace
}  // namespace switch_collnet::of_coll

namespace switch_collnet {

extern "C" {
/// What is missing is null, which is allowed: regMrDmaBuf, getDeviceMr, irecvConsumed, makeVDevice, setNetAttr.
NCCL_PLUGIN_EXPORT NET_TYPE NET_TABLE = {
    .name = "switch",
    .init = of_net::init,
    .devices = of_net::devices,
    .getProperties = of_net::getProperties,
    .listen = of_net::listen,
    .connect = of_net::connect,
    .accept = of_net::accept,
    .regMr = of_net::regMr,
    .deregMr = of_net::deregMr,
    .isend = of_net::isend,
    .irecv = of_net::irecv,
    .iflush = of_net::iflush,
    .test = net::test,
    .closeSend = net::closeConnection,
    .closeRecv = net::closeConnection,
    .closeListen = net::closeListen,
#if SWITCH_COLLNET_VERSION >= 11
    .finalize = of_net::finalize,
#endif
};

/// Missing: regMrDmaBuf, makeVDevice.
NCCL_PLUGIN_EXPORT COLL_TYPE COLL_TABLE = {
    .name = "switch",
    .init = of_coll::init,
    .devices = of_coll::devices,
    .getProperties = of_coll::getProperties,
    .listen = of_coll::listen,
    .connect = coll::connect,
    .reduceSupport = coll::reduceSupport,
    .regMr = of_coll::regMr,
    .deregMr = coll::deregisterMemory,
    .iallreduce = of_coll::iallreduce,
#if SWITCH_COLLNET_VERSION >= 8
    .iallgather = of_coll::iallgather,
    .ireducescatter = of_coll::ireducescatter,
#endif
    .iflush = coll::flush,
    .test = coll::test,
    .closeColl = coll::closeColl,
    .closeListen = coll::closeListen,
#if SWITCH_COLLNET_VERSION >= 11
    .finalize = coll::finalize,
#endif
};
}

}  // namespace switch_collnet

namespace switch_collnet::coll {

/// The faults "no-allgather" and "no-reducescatter". A library looks at a table after init only. Written once, as other
/// communicators may be reading it.
void leaveOut() {
#if SWITCH_COLLNET_VERSION >= 8
  static const bool done = [] {
    Settings settings;
    settings.read();
    if (settings.faults.has("no-allgather")) COLL_TABLE.iallgather = nullptr;
    if (settings.faults.has("no-reducescatter")) COLL_TABLE.ireducescatter = nullptr;
    return true;
  }();
  static_cast<void>(done);
#endif
}

}  // namespace switch_collnet::coll
