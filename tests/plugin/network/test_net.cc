// A network plugin of version TEST_NET_VERSION over UNIX sockets, which can be told to misbehave (test_net.h). All
// versions are made of this source: a table takes of each function the overload that has its version's signature.
#include "plugin/network/test_net.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "examples/plugins/unix_net/transport.h"
#include "nccl_net.h"
#include "plugin/network/test_net_faults.h"
#include "plugin/network/test_net_memory.h"

#define JOIN_(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define TABLE_TYPE JOIN(ncclNet_v, TEST_NET_VERSION, _t)
#define TABLE JOIN(ncclNetPlugin_v, TEST_NET_VERSION, )
#define PROPERTIES JOIN(ncclNetProperties_v, TEST_NET_VERSION, _t)

namespace test_net {

using Clock = std::chrono::steady_clock;
using tutti::test::TestNetCounts;
using tutti::test::TestNetFaults;

constexpr int kVersion = TEST_NET_VERSION;

inline ncclDebugLogger_t logger = nullptr;
inline TestNetCounts counts;
inline TestNetFaults faults;
inline tutti::test::TestNetMemory memory;

/// What a table knows of its devices.
struct DeviceList {
  char names[16][32];
  char paths[16][64];
  std::mutex mutex;                     // of all these: communicators may be made by several threads
  std::vector<std::vector<int>> fused;  // only with "ports"
};
inline DeviceList netDevices;

inline ncclResult_t failed(const char* call, const std::string& why, ncclResult_t code) {
  if (!faults.has("silent")) logger(NCCL_LOG_WARN, NCCL_NET, __FILE__, __LINE__, "test net: %s: %s", call, why.c_str());
  return faults.has("odd-code") ? static_cast<ncclResult_t>(12) : code;
}
inline ncclResult_t told(const char* call) {
  return failed(call, "told to fail", ncclSystemError);
}

/// With "one-endpoint": it is gone.
inline std::atomic<bool> endpointGone = false;

struct Connection;

/// A request of the transport, and when the test plugin admits that it is done.
struct Request {
  Connection* connection;
  unix_net::Request* inner;
  std::uint64_t number;
  bool seen = false;  // done, but perhaps not admitted
  Clock::time_point since{};
};

struct Connection {
  std::unique_ptr<unix_net::Connection> inner;
  std::set<Request*> requests;
  std::uint64_t posted = 0;
  std::uint64_t latestDone = 0;
  int tries = 0;
  bool accepted = false;  // with "waits", a sender's: the other end has said so

  explicit Connection(unix_net::Connection* c) : inner(c) { ++counts.openEnds; }
  ~Connection() {
    for (Request* request : requests) delete request;
    --counts.openEnds;
  }
};

struct Listener {
  std::unique_ptr<unix_net::Listener> inner;
  int tries = 0;
};

void fillTables();

// ---- init and devices

/// Puts settings into the environment that are not there, as networks do whose transfers want them.
inline void setSettings(const char* of) {
  const char* const list = std::getenv(of);
  std::string_view rest = list != nullptr ? list : "";
  while (!rest.empty()) {
    const std::string word(rest.substr(0, rest.find(';')));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    const std::size_t equals = std::min(word.find('='), word.size());
    ::setenv(word.substr(0, equals).c_str(), word.substr(std::min(equals + 1, word.size())).c_str(), 0);
  }
}
inline void sleepAsTold(const char* fault) {
  if (faults.has(fault)) std::this_thread::sleep_for(std::chrono::milliseconds(faults.value(fault)));
}
inline ncclResult_t start(ncclDebugLogger_t log) {
  if (logger == nullptr) logger = log;
  faults.read(kVersion);
  if (faults.strikes("init")) return told("init");
  sleepAsTold("init-sleeps");
  setSettings("TEST_NET_SETS");
  ++counts.inits;
  fillTables();
  return ncclSuccess;
}
inline ncclResult_t init(ncclDebugLogger_t log) {
  return start(log);
}
inline ncclResult_t init(ncclDebugLogger_t log, ncclProfilerCallback_t profile) {
  return profile != nullptr ? start(log) : ncclInternalError;
}
inline ncclResult_t init(void** ctx, std::uint64_t commId, ncclNetCommConfig_v11_t* config, ncclDebugLogger_t log,
                         ncclProfilerCallback_t profile) {
  *ctx = &counts;
  counts.commId = commId;
  counts.trafficClass = config->trafficClass;
  return profile != nullptr ? start(log) : ncclInternalError;
}
inline ncclResult_t finalize(void* ctx) {
  ++counts.finalizes;
  return ctx == &counts ? ncclSuccess : ncclInternalError;
}
inline int physicalDevices() {
  return faults.has("ports") ? static_cast<int>(faults.value("ports")) : faults.has("two-devices") ? 2 : 1;
}
/// What a fused device is made of; null: it is none.
inline const std::vector<int>* partsOf(const DeviceList& list, int device) {
  const int fused = device - physicalDevices();
  if (!faults.has("ports") || fused < 0) return nullptr;
  return &list.fused[static_cast<std::size_t>(fused)];
}
inline ncclResult_t countDevices(DeviceList& list, int* count) {
  const std::lock_guard lock(list.mutex);
  *count = faults.has("zero-devices") ? 0 : physicalDevices() + static_cast<int>(list.fused.size());
  return faults.strikes("devices") ? told("devices") : ncclSuccess;
}
inline ncclResult_t devices(int* count) {
  return countDevices(netDevices, count);
}
/// Callers on other threads read the text that they were given: it is not written again where it stays the same.
template <std::size_t N, class... Args>
void writeOnce(char (&text)[N], const char* format, Args... args) {
  char now[N] = {};
  std::snprintf(now, N, format, args...);
  if (std::strcmp(now, text) != 0) std::memcpy(text, now, N);
}
/// Of a device with "ports": where it is, or that it is made of others.
inline void describePorts(DeviceList& list, int device, PROPERTIES* props) {
  const std::vector<int>* const parts = partsOf(list, device);
  const int first = parts != nullptr ? parts->front() : device;
  writeOnce(list.paths[device], "/sys/devices/pci0000:1a/0000:1a:01.0/0000:%02x:00.%d", 0x1b + first / 2, first % 2);
  props->pciPath = list.paths[device];
  props->port = 1 + first % 2;
  if (parts == nullptr) return;
  writeOnce(list.names[device], "test%d+%zu", first, parts->size() - 1);
  props->speed *= static_cast<int>(parts->size());
#if TEST_NET_VERSION >= 9
  if (faults.has("no-parts")) return;
  props->vProps.ndevs = static_cast<int>(parts->size());
  std::copy(parts->begin(), parts->end(), props->vProps.devs);
#endif
}
inline ncclResult_t describe(DeviceList& list, int device, PROPERTIES* props) {
  const std::lock_guard lock(list.mutex);
  if (device < 0 || device >= (faults.has("ports") ? physicalDevices() + static_cast<int>(list.fused.size()) : 4))
    return failed("getProperties", "no such device", ncclInvalidArgument);
  *props = {};
  const bool fused = faults.has("ports") && partsOf(list, device) != nullptr;
  if (!fused) writeOnce(list.names[device], "test%d", device);
  props->name = faults.has("no-name") ? nullptr : list.names[device];
  props->guid = static_cast<std::uint64_t>(device) + 1;
  props->ptrSupport = faults.has("gdr") ? NCCL_PTR_HOST | NCCL_PTR_CUDA : NCCL_PTR_HOST;
  props->speed = 10000 + kVersion;
  props->port = 1;
  props->latency = 2;
  props->maxComms = 1024;
  props->maxRecvs = 1;
#if TEST_NET_VERSION >= 7
  if (faults.has("unpack")) props->netDeviceType = NCCL_NET_DEVICE_UNPACK;
  if (faults.has("unknown-device")) props->netDeviceType = static_cast<ncclNetDeviceType>(7);
#endif
#if TEST_NET_VERSION >= 9
  props->vProps.ndevs = 1;
  props->vProps.devs[0] = device;
  props->maxP2pBytes = faults.has("no-p2p-bytes") ? 0 : MAX_NET_SIZE;
  props->maxCollBytes = MAX_COLLNET_SIZE;
#endif
  if (faults.has("ports")) describePorts(list, device, props);
  return ncclSuccess;
}
inline ncclResult_t getProperties(int device, PROPERTIES* props) {
  return describe(netDevices, device, props);
}
template <class Parts>
ncclResult_t fuse(DeviceList& list, const char* fault, int* device, const Parts& parts) {
  const std::lock_guard lock(list.mutex);
  counts.fused = parts.ndevs;
  if (parts.ndevs < 2) return failed("makeVDevice", "one device is no group", ncclInvalidArgument);
  if (faults.strikes(fault)) return told("makeVDevice");
  if (faults.has("no-fused")) return ncclSuccess;
  *device = 3;
  if (!faults.has("ports")) return ncclSuccess;
  *device = physicalDevices() + static_cast<int>(list.fused.size());
  list.fused.emplace_back(parts.devs, parts.devs + parts.ndevs);
  return ncclSuccess;
}
template <class Parts>
ncclResult_t makeVDevice(int* device, Parts* parts) {
  ++counts.fusions;
  return fuse(netDevices, "fuse", device, *parts);
}

// ---- connections

/// With "waits": until something is there, for so long.
template <class There>
bool waitFor(There there) {
  const Clock::time_point end = Clock::now() + std::chrono::seconds(20);
  while (!there()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}
/// A receiver says with a byte that it has accepted.
inline bool accepted(Connection& connection) {
  if (connection.accepted || !connection.inner->sends || !faults.has("waits")) return true;
  char word = 0;
  connection.accepted = ::recv(connection.inner->fd, &word, 1, MSG_DONTWAIT) >= 0;
  return connection.accepted;
}
inline ncclResult_t listen(void*, int, void* handle, void** listener) {
  auto* const made = unix_net::listen(*static_cast<unix_net::Handle*>(handle));
  if (made == nullptr) return failed("listen", std::strerror(errno), ncclSystemError);
  *listener = new Listener{std::unique_ptr<unix_net::Listener>(made)};
  ++counts.openEnds;
  return ncclSuccess;
}
inline ncclResult_t listen(int device, void* handle, void** listener) {
  return listen(nullptr, device, handle, listener);
}
inline ncclResult_t connect(void*, int, void* handle, void** connection, ncclNetDeviceHandle_t**) {
  *connection = nullptr;
  if (faults.strikes("connect")) return told("connect");
  if (faults.has("no-connection")) return ncclSuccess;
  sleepAsTold("connect-sleeps");
  auto* const bytes = static_cast<char*>(handle);
  if (faults.has("busy") && ++bytes[NCCL_NET_HANDLE_MAXSIZE - 1] < 4) return ncclSuccess;
  auto* const made = unix_net::connect(*static_cast<unix_net::Handle*>(handle));
  if (made == nullptr && errno == EAGAIN) return ncclSuccess;
  if (made == nullptr) return failed("connect", std::strerror(errno), ncclRemoteError);
  *connection = new Connection(made);
  return ncclSuccess;
}
inline ncclResult_t connect(int device, ncclNetCommConfig_v10_t* config, void* handle, void** connection,
                            ncclNetDeviceHandle_t** kernels) {
  counts.trafficClass = config->trafficClass;
  return connect(nullptr, device, handle, connection, kernels);
}
inline ncclResult_t connect(int device, void* handle, void** connection, ncclNetDeviceHandle_t** kernels) {
  return connect(nullptr, device, handle, connection, kernels);
}
inline ncclResult_t connect(int device, void* handle, void** connection) {
  return connect(nullptr, device, handle, connection, nullptr);
}
inline ncclResult_t accept(void* from, void** connection, ncclNetDeviceHandle_t**) {
  *connection = nullptr;
  if (faults.strikes("accept")) return told("accept");
  auto& listener = *static_cast<Listener*>(from);
  if (faults.has("busy") && ++listener.tries < 4) return ncclSuccess;
  unix_net::Connection* made = unix_net::accept(*listener.inner);
  const auto here = [&] { return (made = unix_net::accept(*listener.inner)) != nullptr || errno != EAGAIN; };
  if (made == nullptr && errno == EAGAIN && faults.has("waits") && !waitFor(here))
    return failed("accept", "nobody connects", ncclRemoteError);
  if (made == nullptr && errno == EAGAIN) return ncclSuccess;
  if (made == nullptr) return failed("accept", std::strerror(errno), ncclSystemError);
  if (faults.has("waits")) ::send(made->fd, "a", 1, MSG_NOSIGNAL);
  *connection = new Connection(made);
  return ncclSuccess;
}
inline ncclResult_t accept(void* listener, void** connection) {
  return accept(listener, connection, nullptr);
}
inline ncclResult_t closeListen(void* listener) {
  delete static_cast<Listener*>(listener);
  --counts.openEnds;
  return ncclSuccess;
}
inline ncclResult_t closeConnection(void* connection) {
  auto* const closed = static_cast<Connection*>(connection);
  const std::size_t underWay = closed->requests.size();
  const char* const call = closed->inner->sends ? "closeSend" : "closeRecv";
  memory.close(connection);
  delete closed;
  if (underWay == 0 || !faults.has("one-endpoint")) return ncclSuccess;
  endpointGone = true;
  return failed(call, std::to_string(underWay) + " requests are under way: their endpoint goes", ncclInternalError);
}

// ---- memory

inline ncclResult_t regMr(void* connection, void* data, std::size_t bytes, int type, void** registration) {
  const bool onGpu = type == NCCL_PTR_CUDA && faults.has("gdr");
  if ((type != NCCL_PTR_HOST && !onGpu) || bytes == 0)
    return failed("regMr", "not memory of the host", ncclInternalError);
  if (!memory.enter(connection, data, bytes, onGpu)) return told("regMr");
  if (onGpu) ++counts.gpuRegistrations;
  ++counts.registrations;
  *registration = data;
  return ncclSuccess;
}
inline ncclResult_t regMr(void* connection, void* data, int bytes, int type, void** registration) {
  return regMr(connection, data, static_cast<std::size_t>(bytes), type, registration);
}
inline ncclResult_t deregMr(void* connection, void* registration) {
  memory.leave(connection, registration);
  --counts.registrations;
  return ncclSuccess;
}

// ---- messages

inline ncclResult_t post(Connection& connection, void* data, std::size_t bytes, void** request) {
  *request = nullptr;
  const char* const call = connection.inner->sends ? "isend" : "irecv";
  if (faults.strikes(call)) return told(call);
  if (endpointGone) return failed(call, "its endpoint is gone", ncclRemoteError);
  if (faults.has("busy") && ++connection.tries % 2 == 1) return ncclSuccess;
  unix_net::Request* const inner = connection.inner->post(data, bytes);
  if (!connection.inner->error.empty()) return failed(call, connection.inner->error, ncclRemoteError);
  if (inner == nullptr) return ncclSuccess;
  auto* const made = new Request{&connection, inner, ++connection.posted};
  connection.requests.insert(made);
  *request = made;
  return ncclSuccess;
}
inline ncclResult_t isend(void* to, void* data, std::size_t bytes, int tag, void* registration, void*, void** request) {
  *request = nullptr;
  if (faults.stalls(tag)) return ncclSuccess;
  const ncclResult_t result = post(*static_cast<Connection*>(to), data, bytes, request);
  if (*request != nullptr) memory.send(to, data, bytes, registration);
  return result;
}
inline ncclResult_t isend(void* to, void* data, std::size_t bytes, int tag, void* registration, void** request) {
  return isend(to, data, bytes, tag, registration, nullptr, request);
}
inline ncclResult_t isend(void* to, void* data, int bytes, int tag, void* registration, void** request) {
  return isend(to, data, static_cast<std::size_t>(bytes), tag, registration, nullptr, request);
}
template <class Size>
ncclResult_t receive(void* from, int n, void** data, Size* sizes, void** request) {
  if (*request != nullptr) counts.sawHint = true;
  if (n != 1) return failed("irecv", "one receive at a time", ncclInternalError);
  return post(*static_cast<Connection*>(from), data[0], static_cast<std::size_t>(sizes[0]), request);
}
inline ncclResult_t irecv(void* from, int n, void** data, std::size_t* sizes, int*, void**, void** events,
                          void** request) {
  return events != nullptr && events[0] == nullptr ? receive(from, n, data, sizes, request) : ncclInternalError;
}
inline ncclResult_t irecv(void* from, int n, void** data, std::size_t* sizes, int*, void**, void** request) {
  return receive(from, n, data, sizes, request);
}
inline ncclResult_t irecv(void* from, int n, void** data, int* sizes, int*, void**, void** request) {
  return receive(from, n, data, sizes, request);
}
/// Every second one is a request of no connection, which the second test finds done.
inline ncclResult_t iflush(void*, int n, void**, int* sizes, void**, void** request) {
  if (n != 1 || sizes[0] <= 0) return failed("iflush", "nothing was received", ncclInternalError);
  *request = ++counts.flushes % 2 == 0 ? new Request{nullptr, nullptr, 0} : nullptr;
  return ncclSuccess;
}

/// Whether a request that is done may be called so.
inline bool admitted(Request& request) {
  Connection& connection = *request.connection;
  if (!request.seen) {
    request.seen = true;
    request.since = Clock::now();
    connection.latestDone = std::max(connection.latestDone, request.number);
  }
  const auto waited = Clock::now() - request.since;
  if (faults.has("delay") && waited < std::chrono::microseconds(faults.value("delay"))) return false;
  const bool held = faults.has("reorder") && request.number % 2 == 1 && connection.latestDone <= request.number;
  if (held && waited < std::chrono::milliseconds(2)) return false;
  return !faults.strikes("hang");
}
inline ncclResult_t test(void* posted, int* done, int* sizes) {
  auto* const request = static_cast<Request*>(posted);
  *done = 0;
  if (request->connection == nullptr) {  // a flush
    if (!std::exchange(request->seen, true)) return ncclSuccess;
    delete request;
    *done = 1;
    return ncclSuccess;
  }
  Connection& connection = *request->connection;
  if (faults.strikes("test")) return told("test");
  if (endpointGone) return failed("test", "its endpoint is gone", ncclRemoteError);
  if (!waitFor([&] { return accepted(connection); })) return failed("test", "nobody accepts", ncclRemoteError);
  const auto earlier = [request](const Request* other) { return other->number < request->number; };
  if (faults.has("in-order") && std::any_of(connection.requests.begin(), connection.requests.end(), earlier))
    return failed("test", "an earlier request was posted", ncclInternalError);
  if (!request->inner->done()) connection.inner->progress();
  if (!request->inner->done()) {
    return connection.inner->error.empty() ? ncclSuccess : failed("test", connection.inner->error, ncclRemoteError);
  }
  if (!admitted(*request)) return ncclSuccess;
  const bool cut = !connection.inner->sends && faults.strikes("short");
  if (sizes != nullptr && !faults.has("no-sizes"))
    sizes[0] = static_cast<int>(cut ? request->inner->header / 2 : request->inner->header);
  request->inner->busy = false;
  connection.requests.erase(request);
  delete request;
  *done = 1;
  return ncclSuccess;
}

}  // namespace test_net

extern "C" {
NCCL_PLUGIN_EXPORT tutti::test::TestNetCounts* testNetCounts() {
  return &test_net::counts;
}

NCCL_PLUGIN_EXPORT tutti::test::TestNetMemory* testNetMemory() {
  return &test_net::memory;
}

static char networkName[] = {'t', 'e', 's', 't', 'v', '0' + TEST_NET_VERSION / 10, '0' + TEST_NET_VERSION % 10, '\0'};

/// The rest of the table is filled by init(): nobody may look at it before.
NCCL_PLUGIN_EXPORT TABLE_TYPE TABLE = {.name = networkName, .init = test_net::init};
}

namespace test_net {

void fillTables() {
  TABLE_TYPE& table = TABLE;
  if (table.devices != nullptr) return;  // by an earlier communicator, whose threads may be reading it
  table.devices = devices;
  table.getProperties = getProperties;
  table.listen = listen;
  table.connect = connect;
  table.accept = accept;
  table.regMr = regMr;
  table.deregMr = deregMr;
  if (!faults.has("missing")) table.isend = isend;
  table.irecv = irecv;
  table.iflush = iflush;
  table.test = test;
  table.closeSend = table.closeRecv = closeConnection;
  table.closeListen = closeListen;
#if TEST_NET_VERSION >= 9
  table.makeVDevice = makeVDevice;
#endif
#if TEST_NET_VERSION >= 11
  table.finalize = finalize;
#endif
}

}  // namespace test_net

#include "plugin/network/test_collnet.h"
