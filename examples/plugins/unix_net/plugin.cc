// A network plugin over UNIX sockets, for the ranks of one host. README.md explains it from top to bottom.
//
//   NCCL_NET_PLUGIN=/path/to/libnccl-net-unix.so
#include "transport.h"

namespace {

ncclDebugLogger_t logger;
ncclProfilerCallback_t profiler;

/// What profilers see of a message (the event's netPlugin.data), and how they know that it is ours (netPlugin.id).
struct MessageEvent {
  int sends;
  std::size_t bytes;  ///< a receive's: how much fits, and at its end how much came
};
constexpr std::int64_t kMessageEvents = 0x55 << 16 | 1;

/// Says what went wrong, which becomes the application's ncclGetLastError().
#define WARN(...) logger(NCCL_LOG_WARN, NCCL_NET, __FILE__, __LINE__, __VA_ARGS__)

ncclResult_t init(void** ctx, std::uint64_t, ncclNetCommConfig_v12_t*, ncclDebugLogger_t log,
                  ncclProfilerCallback_t profile) {
  // They are always the same, and other communicators may be using them.
  if (logger == nullptr) logger = log;
  if (profiler == nullptr) profiler = profile;
  *ctx = nullptr;  // nothing has to be kept for one communicator
  return ncclSuccess;
}

ncclResult_t finalize(void*) {
  return ncclSuccess;
}

ncclResult_t devices(int* count) {
  *count = 1;
  return ncclSuccess;
}

ncclResult_t getProperties(int device, ncclNetProperties_v12_t* props) {
  static char name[] = "unix0";
  *props = {};  // among others: the host drives the device (NCCL_NET_DEVICE_HOST)
  props->name = name;
  props->guid = 1;
  props->ptrSupport = NCCL_PTR_HOST;
  props->speed = 40000;
  props->port = 1;
  props->maxComms = 65536;
  props->maxRecvs = 1;
  props->vProps.ndevs = 1;
  props->vProps.devs[0] = device;
  props->maxP2pBytes = MAX_NET_SIZE;
  props->maxCollBytes = MAX_COLLNET_SIZE;
  props->railId = props->planeId = NCCL_NET_ID_UNDEF;
  return ncclSuccess;
}

ncclResult_t listen(void*, int, void* handle, void** listener) {
  *listener = unix_net::listen(*static_cast<unix_net::Handle*>(handle));
  if (*listener != nullptr) return ncclSuccess;
  WARN("unix_net: no socket to listen on: %s", std::strerror(errno));
  return ncclSystemError;
}

ncclResult_t connect(void*, int, void* handle, void** connection, ncclNetDeviceHandle_t**) {
  *connection = unix_net::connect(*static_cast<unix_net::Handle*>(handle));
  if (*connection != nullptr || errno == EAGAIN) return ncclSuccess;
  WARN("unix_net: connecting failed: %s. Are all ranks on one host?", std::strerror(errno));
  return ncclRemoteError;
}

ncclResult_t accept(void* listener, void** connection, ncclNetDeviceHandle_t**) {
  *connection = unix_net::accept(*static_cast<unix_net::Listener*>(listener));
  if (*connection != nullptr || errno == EAGAIN) return ncclSuccess;
  WARN("unix_net: accepting failed: %s", std::strerror(errno));
  return ncclSystemError;
}

/// Sockets take any memory of the host as it is.
ncclResult_t regMr(void*, void*, std::size_t, int type, void** mhandle) {
  *mhandle = nullptr;
  if (type == NCCL_PTR_HOST) return ncclSuccess;
  WARN("unix_net: only memory of the host can be registered");
  return ncclInternalError;
}

ncclResult_t deregMr(void*, void*) {
  return ncclSuccess;
}

ncclResult_t failed(const unix_net::Connection& connection) {
  WARN("unix_net: %s failed: %s", connection.sends ? "sending" : "receiving", connection.error.c_str());
  return ncclRemoteError;
}

/// `step`: what the library calls the step that the message is for; null: no profiler wants to hear of it.
void* post(unix_net::Connection& connection, void* data, std::size_t bytes, void* step) {
  unix_net::Request* const request = connection.post(data, bytes);
  if (request == nullptr || step == nullptr) return request;
  MessageEvent event{connection.sends ? 1 : 0, bytes};
  profiler(&request->event, ncclProfilerNetEventStart, step, kMessageEvents, &event);
  return request;
}

ncclResult_t isend(void* sendComm, void* data, std::size_t bytes, int, void*, void* step, void** request) {
  auto& connection = *static_cast<unix_net::Connection*>(sendComm);
  *request = post(connection, data, bytes, step);
  return connection.error.empty() ? ncclSuccess : failed(connection);
}

ncclResult_t irecv(void* recvComm, int, void** data, std::size_t* sizes, int*, void**, void** steps, void** request) {
  auto& connection = *static_cast<unix_net::Connection*>(recvComm);
  *request = post(connection, data[0], sizes[0], steps[0]);  // maxRecvs is 1, so there is no other
  return connection.error.empty() ? ncclSuccess : failed(connection);
}

ncclResult_t iflush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;  // the processor has written the data: everybody sees it
  return ncclSuccess;
}

ncclResult_t test(void* posted, int* done, int* sizes) {
  auto& request = *static_cast<unix_net::Request*>(posted);
  unix_net::Connection& connection = *request.connection;
  if (!request.done()) connection.progress();
  *done = request.done() ? 1 : 0;
  if (*done == 0) return connection.error.empty() ? ncclSuccess : failed(connection);
  if (sizes != nullptr) sizes[0] = static_cast<int>(request.header);
  if (request.event != nullptr) {
    MessageEvent event{connection.sends ? 1 : 0, request.header};
    profiler(&request.event, ncclProfilerNetEventUpdateAndStop, nullptr, kMessageEvents, &event);
  }
  request.busy = false;
  return ncclSuccess;
}

template <class T>
ncclResult_t close(void* object) {
  delete static_cast<T*>(object);
  return ncclSuccess;
}

}  // namespace

extern "C" {
/// What is missing is null, which is allowed: regMrDmaBuf, getDeviceMr, irecvConsumed, makeVDevice, setNetAttr.
NCCL_PLUGIN_EXPORT ncclNet_v12_t ncclNetPlugin_v12 = {
    .name = "unix",
    .init = init,
    .devices = devices,
    .getProperties = getProperties,
    .listen = listen,
    .connect = connect,
    .accept = accept,
    .regMr = regMr,
    .deregMr = deregMr,
    .isend = isend,
    .irecv = irecv,
    .iflush = iflush,
    .test = test,
    .closeSend = close<unix_net::Connection>,
    .closeRecv = close<unix_net::Connection>,
    .closeListen = close<unix_net::Listener>,
    .finalize = finalize,
};
}
