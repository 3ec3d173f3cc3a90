/* The connections of a test plugin. A message is a header and its bytes. Sends leave, and receives are filled, in the
 * order in which they were posted. No thread works behind the caller's back: whoever posts or tests moves as much as
 * the socket takes. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "plugin/network/test_net_faults.h"
#include "plugin/network/test_net_memory.h"
#include "plugin/network/test_net_parts.h"
#include "plugin/network/test_net_socket.h"

typedef struct Connection Connection;

/* It belongs to its connection, but a flush and a group, which belong to none. */
typedef struct Request {
  Connection* connection; /* of a message */
  struct Request* next;   /* posted later */
  uint64_t number, header, moved;
  char* data;
  size_t room;  /* a receive: how much fits */
  int seen;     /* done, but perhaps not admitted */
  double since; /* when it was */
  void* event;  /* a profiler's */
  int n;        /* of a group */
  size_t sizes[kTestNetMost];
} Request;

struct Connection {
  int fd, sends;
  Request* requests; /* oldest first */
  int nRequests;
  uint64_t posted, latestDone;
  int tries;
  int accepted; /* with "waits", a sender's: the other end has said so */
  const char* error;
};

typedef struct {
  int fd, tries;
} Listener;

/* With "one-endpoint": it is gone. */
static atomic_int endpointGone;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int isZero(const void* bytes, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (((const char*)bytes)[i] != 0) return 0;
  }
  return 1;
}

static ncclResult_t stranger(const char* call) {
  return failed(call, "this context is none", ncclInternalError);
}

/* ---- making connections ---- */

/* In a handle: the name of a socket, a mark, and how often connect() was called with it. */
enum { kMark = 0x5a, kMarkAt = 64, kCallsAt = NCCL_NET_HANDLE_MAXSIZE - 1 };

ncclResult_t listenNet(int ofCollNet, void* context, int device, void* handle, void** listener) {
  TestNetRecord* record = beginRecord();
  *(ofCollNet ? &record->collListen.context : &record->listen.context) = context;
  *(ofCollNet ? &record->collListen.device : &record->listen.device) = device;
  *(ofCollNet ? &record->collListen.isEmpty : &record->listen.isEmpty) = *listener == NULL;
  *(ofCollNet ? &record->collListen.handleIsBlank : &record->listen.handleIsBlank) =
      isZero(handle, NCCL_NET_HANDLE_MAXSIZE);
  recordIsDone();
  if (!isContext(context, ofCollNet)) return stranger("listen");
  sleepAsTold("listen-sleeps");
  const int fd = socketListen(handle);
  if (fd < 0) return failed("listen", strerror(errno), ncclSystemError);
  ((unsigned char*)handle)[kMarkAt] = kMark;
  Listener* made = calloc(1, sizeof *made);
  made->fd = fd;
  *listener = made;
  countUp(&testCounts.openEnds, 1);
  return ncclSuccess;
}

static Connection* newConnection(int fd, int sends) {
  Connection* made = calloc(1, sizeof *made);
  made->fd = fd;
  made->sends = sends;
  countUp(&testCounts.openEnds, 1);
  return made;
}

ncclResult_t connectNet(void* context, int device, int trafficClass, void* handle, void** connection,
                        ncclNetDeviceHandle_t** kernels) {
  unsigned char* const bytes = handle;
  TestNetRecord* record = beginRecord();
  record->connect.context = context;
  record->connect.device = device;
  record->connect.trafficClass = trafficClass;
  record->connect.handle = handle;
  record->connect.calls = ++bytes[kCallsAt];
  record->connect.knowsOwn = bytes[kMarkAt] == kMark;
  record->connect.isEmpty = *connection == NULL;
  record->connect.offersKernels = kernels != NULL && *kernels == NULL;
  recordIsDone();
  *connection = NULL;
  if (!isContext(context, 0)) return stranger("connect");
  if (faultStrikes("connect")) return toldToFail("connect");
  if (hasFault("no-connection")) return ncclSuccess;
  sleepAsTold("connect-sleeps");
  if (hasFault("busy") && bytes[kCallsAt] < 4) return ncclSuccess;
  const int fd = socketConnect(handle);
  if (fd >= 0) *connection = newConnection(fd, 1);
  if (fd >= 0 || errno == EAGAIN) return ncclSuccess;
  return failed("connect", strerror(errno), ncclRemoteError);
}

/* With "waits": until somebody connects, or an error. */
static int acceptPatiently(int listener) {
  const double end = now() + 20;
  for (;;) {
    const int fd = socketAccept(listener);
    if (fd >= 0 || errno != EAGAIN || !hasFault("waits") || now() > end) return fd;
    usleep(50);
  }
}

ncclResult_t acceptNet(void* listener, void** connection, ncclNetDeviceHandle_t** kernels) {
  TestNetRecord* record = beginRecord();
  record->accept.listener = listener;
  record->accept.isEmpty = *connection == NULL;
  record->accept.offersKernels = kernels != NULL && *kernels == NULL;
  recordIsDone();
  *connection = NULL;
  if (faultStrikes("accept")) return toldToFail("accept");
  sleepAsTold("accept-sleeps");
  Listener* const from = listener;
  if (hasFault("busy") && ++from->tries < 4) return ncclSuccess;
  const int fd = acceptPatiently(from->fd);
  if (fd < 0 && errno == EAGAIN && hasFault("waits")) return failed("accept", "nobody connects", ncclRemoteError);
  if (fd < 0 && errno == EAGAIN) return ncclSuccess;
  if (fd < 0) return failed("accept", strerror(errno), ncclSystemError);
  if (hasFault("waits")) send(fd, "a", 1, MSG_NOSIGNAL);
  *connection = newConnection(fd, 0);
  return ncclSuccess;
}

ncclResult_t closeListener(void* listener) {
  TestNetRecord* record = beginRecord();
  record->closed.listener = listener;
  recordIsDone();
  close(((Listener*)listener)->fd);
  free(listener);
  countUp(&testCounts.openEnds, -1);
  return ncclSuccess;
}

ncclResult_t closeConnection(void* connection) {
  Connection* const closed = connection;
  const int underWay = closed->nRequests;
  const char* const call = closed->sends ? "closeSend" : "closeRecv";
  TestNetRecord* record = beginRecord();
  *(closed->sends ? &record->closed.sender : &record->closed.receiver) = connection;
  recordIsDone();
  closeMemory(connection);
  while (closed->requests != NULL) {
    Request* const first = closed->requests;
    closed->requests = first->next;
    free(first);
  }
  close(closed->fd);
  free(closed);
  countUp(&testCounts.openEnds, -1);
  if (underWay == 0 || !hasFault("one-endpoint")) return ncclSuccess;
  atomic_store(&endpointGone, 1);
  char why[64];
  snprintf(why, sizeof why, "%d requests are under way: their endpoint goes", underWay);
  return failed(call, why, ncclInternalError);
}

/* ---- memory ---- */

static void recordRegistration(void* comm, void* data, size_t bytes, int type, int isEmpty) {
  TestNetRecord* record = beginRecord();
  memset(&record->registration, 0, sizeof record->registration);
  record->registration.comm = comm;
  record->registration.data = data;
  record->registration.bytes = bytes;
  record->registration.type = type;
  record->registration.isEmpty = isEmpty;
  recordIsDone();
}

static ncclResult_t enter(void* comm, void* data, size_t bytes, void** handle) {
  *handle = hasFault("no-handles") ? NULL : data;
  if (!enterMemory(comm, data, bytes, *handle)) return toldToFail("regMr");
  countUp(&testCounts.registrations, 1);
  return ncclSuccess;
}

ncclResult_t registerMemory(void* comm, void* data, size_t bytes, int type, void** handle) {
  recordRegistration(comm, data, bytes, type, *handle == NULL);
  sleepAsTold("regMr-sleeps");
  const int onGpu = type == NCCL_PTR_CUDA && hasFault("gdr");
  if (onGpu && hasFault("no-gpu-memory")) return toldToFail("regMr");
  if ((type != NCCL_PTR_HOST && !onGpu) || bytes == 0)
    return failed("regMr", "not memory of the host", ncclInternalError);
  const ncclResult_t result = enter(comm, data, bytes, handle);
  if (result == ncclSuccess && onGpu) countUp(&testCounts.gpuRegistrations, 1);
  return result;
}

ncclResult_t registerDmaBuf(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd, void** handle) {
  recordRegistration(comm, data, bytes, type, *handle == NULL);
  TestNetRecord* record = beginRecord();
  record->registration.isDmaBuf = 1;
  record->registration.offset = offset;
  record->registration.fd = fd;
  recordIsDone();
  if (hasFault("no-dma-bufs")) return toldToFail("regMrDmaBuf");
  return enter(comm, data, bytes, handle);
}

ncclResult_t deregisterMemory(void* comm, void* handle) {
  TestNetRecord* record = beginRecord();
  record->deregistration.comm = comm;
  record->deregistration.handle = handle;
  recordIsDone();
  leaveMemory(comm, handle);
  countUp(&testCounts.registrations, -1);
  return ncclSuccess;
}

/* ---- messages ---- */

static int isDone(const Request* r) {
  return r->moved >= sizeof r->header && r->moved == sizeof r->header + r->header;
}

/* Whether anything moved. */
static int moveMessage(Connection* connection, Request* r) {
  struct iovec parts[2];
  size_t n = 0;
  const size_t head = sizeof r->header;
  if (r->moved < head) {
    parts[n].iov_base = (char*)&r->header + r->moved;
    parts[n++].iov_len = head - r->moved;
  }
  /* A receiver must not take the next message's bytes for this one's before it knows how long this one is. */
  const size_t before = r->moved > head ? r->moved - head : 0;
  if ((connection->sends || r->moved >= head) && r->header > before) {
    parts[n].iov_base = r->data + before;
    parts[n++].iov_len = r->header - before;
  }
  const size_t moved = socketMove(connection->fd, connection->sends, parts, n, &connection->error);
  r->moved += moved;
  if (!connection->sends && r->moved >= head && r->header > r->room) {
    connection->error = "a message is longer than its receive";
  }
  return moved > 0;
}

static void progress(Connection* connection) {
  for (Request* r = connection->requests; r != NULL && connection->error == NULL; r = r->next) {
    while (!isDone(r) && connection->error == NULL) {
      if (!moveMessage(connection, r)) return;
    }
  }
}

static Request* newRequest(Connection* connection, void* data, size_t bytes) {
  Request* const made = calloc(1, sizeof *made);
  made->connection = connection;
  made->number = ++connection->posted;
  made->data = data;
  *(connection->sends ? &made->header : &made->room) = bytes;
  Request** end = &connection->requests;
  while (*end != NULL) end = &(*end)->next;
  *end = made;
  ++connection->nRequests;
  return made;
}

static ncclResult_t post(Connection* connection, void* data, size_t bytes, void* event, void** request) {
  const char* const call = connection->sends ? "isend" : "irecv";
  *request = NULL;
  if (faultStrikes(call)) return toldToFail(call);
  if (atomic_load(&endpointGone)) return failed(call, "its endpoint is gone", ncclRemoteError);
  if (hasFault("busy") && ++connection->tries % 2 == 1) return ncclSuccess;
  Request* const made = connection->nRequests < NCCL_NET_MAX_REQUESTS ? newRequest(connection, data, bytes) : NULL;
  progress(connection);
  if (connection->error != NULL) return failed(call, connection->error, ncclRemoteError);
  *request = made;
  if (made == NULL || event == NULL) return ncclSuccess;
  return tellEvent(&made->event, ncclProfilerNetEventStart, event, connection->sends, bytes);
}

ncclResult_t sendMessage(void* comm, void* data, size_t bytes, int tag, void* handle, void* event, void** request) {
  TestNetRecord* record = beginRecord();
  record->send.comm = comm;
  record->send.data = data;
  record->send.bytes = bytes;
  record->send.tag = tag;
  record->send.handle = handle;
  record->send.event = event;
  record->send.isEmpty = *request == NULL;
  recordIsDone();
  *request = NULL;
  if (tagStalls(tag)) return ncclSuccess;
  const ncclResult_t result = post(comm, data, bytes, event, request);
  if (*request != NULL) sendMemory(comm, data, bytes, handle);
  return result;
}

/* With "groups": several messages, which nobody sends. */
static ncclResult_t postGroup(int n, const size_t* sizes, void** request) {
  Request* const made = calloc(1, sizeof *made);
  made->n = n;
  for (int i = 0; i < n; ++i) made->sizes[i] = sizes[i] - (size_t)i;
  *request = made;
  return ncclSuccess;
}

ncclResult_t receiveMessages(void* comm, int n, void** data, const size_t* sizes, const int* tags, void** handles,
                             void** events, void** request) {
  if (*request != NULL) countUp(&testCounts.sawHint, 1);
  if (n < 1 || n > (hasFault("groups") ? kTestNetMost : 1)) {
    return failed("irecv", "so many receives were not promised", ncclInternalError);
  }
  TestNetRecord* record = beginRecord();
  record->receive.comm = comm;
  record->receive.n = n;
  record->receive.isEmpty = *request == NULL;
  for (int i = 0; i < n; ++i) {
    record->receive.data[i] = data[i];
    record->receive.sizes[i] = sizes[i];
    record->receive.tags[i] = tags[i];
    record->receive.handles[i] = handles[i];
    record->receive.events[i] = events != NULL ? events[i] : NULL;
  }
  recordIsDone();
  if (n > 1) return postGroup(n, sizes, request);
  return post(comm, data[0], sizes[0], events != NULL ? events[0] : NULL, request);
}

/* Every second one is a request, which the second test finds done. */
ncclResult_t flushMessages(void* comm, int n, void** data, int* sizes, void** handles, void** request) {
  static _Atomic int flushes;
  if (n < 1 || n > kTestNetMost) return failed("iflush", "so many receives were not promised", ncclInternalError);
  TestNetRecord* record = beginRecord();
  record->flush.comm = comm;
  record->flush.n = n;
  record->flush.isEmpty = *request == NULL;
  int received = 1;
  for (int i = 0; i < n; ++i) {
    record->flush.data[i] = data[i];
    record->flush.sizes[i] = (size_t)sizes[i];
    record->flush.handles[i] = handles[i];
    received = received && sizes[i] > 0;
  }
  recordIsDone();
  if (!received) return failed("iflush", "nothing was received", ncclInternalError);
  countUp(&testCounts.flushes, 1);
  *request = atomic_fetch_add(&flushes, 1) % 2 == 1 ? calloc(1, sizeof(Request)) : NULL;
  return ncclSuccess;
}

/* ---- completion ---- */

/* Whether a request that is done may be called so. */
static int admitted(Request* request) {
  Connection* const connection = request->connection;
  if (!request->seen) {
    request->seen = 1;
    request->since = now();
    if (connection->latestDone < request->number) connection->latestDone = request->number;
  }
  const double waited = now() - request->since;
  if (hasFault("delay") && waited < 1e-6 * (double)faultValue("delay")) return 0;
  const int held = hasFault("reorder") && request->number % 2 == 1 && connection->latestDone <= request->number;
  if (held && waited < 2e-3) return 0;
  return !faultStrikes("hang");
}

/* With "waits", of a sender: the receiver says with a byte that it has accepted. */
static int isAccepted(Connection* connection) {
  const double end = now() + 20;
  while (hasFault("waits") && connection->sends && !connection->accepted) {
    char word = 0;
    connection->accepted = recv(connection->fd, &word, 1, MSG_DONTWAIT) >= 0;
    if (connection->accepted) return 1;
    if (now() > end) return 0;
    usleep(50);
  }
  return 1;
}

static void forget(Request* request) {
  Connection* const connection = request->connection;
  Request** at = &connection->requests;
  while (*at != request) at = &(*at)->next;
  *at = request->next;
  --connection->nRequests;
  free(request);
}

int countZeros(const int* sizes) {
  int n = 0;
  while (sizes != NULL && n < kTestNetMost && sizes[n] == 0) ++n;
  return n;
}

/* Of several messages, or a flush. */
static ncclResult_t testAlone(Request* request, int* done, int* sizes) {
  *done = request->n > 0 || request->seen;
  request->seen = 1;
  if (!*done) return ncclSuccess;
  for (int i = 0; i < request->n; ++i) sizes[i] = (int)request->sizes[i];
  free(request);
  return ncclSuccess;
}

/* Updates and stops come as one for receives. */
static ncclResult_t stopEvent(Request* request, size_t bytes) {
  if (request->event == NULL) return ncclSuccess;
  if (!request->connection->sends) {
    return tellEvent(&request->event, ncclProfilerNetEventUpdateAndStop, NULL, 0, bytes);
  }
  const ncclResult_t result = tellEvent(&request->event, ncclProfilerNetEventUpdate, NULL, 1, bytes);
  if (result != ncclSuccess) return result;
  return tellEvent(&request->event, ncclProfilerNetEventStop, NULL, 1, bytes);
}

static ncclResult_t finish(Request* request, int* done, int* sizes) {
  const int cut = !request->connection->sends && faultStrikes("short");
  const size_t bytes = cut ? request->header / 2 : request->header;
  if (sizes != NULL && !hasFault("no-sizes")) sizes[0] = (int)bytes;
  const ncclResult_t result = stopEvent(request, bytes);
  forget(request);
  *done = 1;
  return result;
}

ncclResult_t testRequest(void* posted, int* done, int* sizes) {
  Request* const request = posted;
  TestNetRecord* record = beginRecord();
  record->test.request = posted;
  record->test.offersSizes = countZeros(sizes);
  recordIsDone();
  *done = 0;
  if (request->connection == NULL) return testAlone(request, done, sizes);
  Connection* const connection = request->connection;
  if (faultStrikes("test")) return toldToFail("test");
  if (atomic_load(&endpointGone)) return failed("test", "its endpoint is gone", ncclRemoteError);
  if (!isAccepted(connection)) return failed("test", "nobody accepts", ncclRemoteError);
  if (hasFault("in-order") && connection->requests != request) {
    return failed("test", "an earlier request was posted", ncclInternalError);
  }
  if (!isDone(request)) progress(connection);
  if (isDone(request)) return admitted(request) ? finish(request, done, sizes) : ncclSuccess;
  return connection->error == NULL ? ncclSuccess : failed("test", connection->error, ncclRemoteError);
}

ncclResult_t countOffloadCall(void) {
  countUp(&testCounts.offloadCalls, 1);
  return ncclSuccess;
}
