// Signatures of versions 6 to 11 that differ from those of version 12: overloads of the functions in tables.cc, of
// which a table takes the ones that fit. Those that differ in the width of a number alone are templates there.
#pragma once

#include "collnet.h"
#include "net.h"
#include "settings.h"

namespace switch_collnet::of_net {
namespace {

inline ncclResult_t init(ncclDebugLogger_t log, ncclProfilerCallback_t) {
  const std::string why = start(log);
  return why.empty() ? ncclSuccess : failed(ncclInvalidUsage, "init", why);
}
inline ncclResult_t listen(int device, void* handle, void** listener) {
  return net::listen(device, handle, listener);
}
inline ncclResult_t connect(int device, void* handle, void** connection) {
  return net::connect(device, handle, connection);
}
inline ncclResult_t connect(int device, void* handle, void** connection, ncclNetDeviceHandle_t**) {
  return net::connect(device, handle, connection);
}
inline ncclResult_t connect(int device, ncclNetCommConfig_v10_t*, void* handle, void** connection,
                            ncclNetDeviceHandle_t**) {
  return net::connect(device, handle, connection);
}
inline ncclResult_t accept(void* listener, void** connection) {
  return net::accept(listener, connection);
}
template <class Size>
ncclResult_t isend(void* connection, void* data, Size bytes, int, void*, void** request) {
  return net::isend(connection, data, static_cast<std::size_t>(bytes), request);
}
template <class Size>
ncclResult_t irecv(void* connection, int, void** data, Size* sizes, int*, void**, void** request) {
  return net::irecv(connection, data[0], static_cast<std::size_t>(sizes[0]), request);
}

}  // namespace
}  // namespace switch_collnet::of_net

namespace switch_collnet::of_coll {
namespace {

inline ncclResult_t init(ncclDebugLogger_t log) {
  return coll::init(nullptr, log);
}
inline ncclResult_t listen(int device, void* handle, void** listener) {
  return coll::listen(nullptr, device, handle, listener);
}

}  // namespace
}  // namespace switch_collnet::of_coll
