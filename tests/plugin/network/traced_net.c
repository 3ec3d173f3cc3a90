/* The net of a mixed library is a test network (test_net.h) whose calls are seen on their way: the linker puts the
 * functions below in front of those of test_net_parts.h (--wrap). Versions before 11 do not tell of a communicator's
 * end: their one life ends with the library. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "plugin/mixed_trace.h"
#include "plugin/network/test_net_parts.h"

enum { kMostOwned = 1024 };

/* Whose life a context, a listener, a connection or a request is part of. */
typedef struct {
  const void* thing;
  TracedLife* life;
} Owned;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static Owned owned[kMostOwned];
static TracedLife* ofLibrary; /* of a version without contexts */
static atomic_size_t sent;

static void own(const void* thing, TracedLife* life) {
  pthread_mutex_lock(&mutex);
  int i = 0;
  while (i < kMostOwned && owned[i].life != NULL) ++i;
  if (i == kMostOwned) abort();
  owned[i] = (Owned){thing, life};
  pthread_mutex_unlock(&mutex);
}
/* Null: nobody's. `forget`: it goes. */
static TracedLife* lifeOf(const void* thing, int forget) {
  TracedLife* life = thing == NULL ? ofLibrary : NULL;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < kMostOwned && thing != NULL; ++i) {
    if (owned[i].life == NULL || owned[i].thing != thing) continue;
    life = owned[i].life;
    if (forget) owned[i].life = NULL;
    break;
  }
  pthread_mutex_unlock(&mutex);
  return life;
}

#define WRAPPED(function, parameters)        \
  ncclResult_t __real_##function parameters; \
  ncclResult_t __wrap_##function parameters; \
  ncclResult_t __wrap_##function parameters

WRAPPED(beginNet, (int version, void** context, const uint64_t* commId, const int* trafficClass, ncclDebugLogger_t log,
                   ncclProfilerCallback_t profile)) {
  const ncclResult_t result = __real_beginNet(version, context, commId, trafficClass, log, profile);
  if (result != ncclSuccess) return result;
  if (context != NULL) {
    own(*context, beginLife("net"));
  } else if (ofLibrary == NULL) {
    ofLibrary = beginLife("net");
  } else {
    traceLine("net 1 begins again");
  }
  return result;
}

static void end(TracedLife* life) {
  char facts[40];
  snprintf(facts, sizeof facts, "sent=%zu", atomic_exchange(&sent, 0));
  endLife(life, facts);
}

WRAPPED(endNet, (void* context)) {
  end(lifeOf(context, 1));
  return __real_endNet(context);
}

__attribute__((destructor)) static void unloaded(void) {
  if (testCounts.openEnds != 0) traceLine("WRONG %d ends of the network are open", testCounts.openEnds);
  if (testCounts.registrations != 0) traceLine("WRONG %d registrations are left", testCounts.registrations);
  if (ofLibrary != NULL) end(ofLibrary);
}

WRAPPED(listenNet, (int ofCollNet, void* context, int device, void* handle, void** listener)) {
  TracedLife* life = lifeOf(context, 0);
  enterLife(life, "listen");
  const ncclResult_t result = __real_listenNet(ofCollNet, context, device, handle, listener);
  if (result == ncclSuccess) own(*listener, life);
  leaveLife(life);
  return result;
}

WRAPPED(connectNet, (void* context, int device, int trafficClass, void* handle, void** connection,
                     ncclNetDeviceHandle_t** kernels)) {
  TracedLife* life = lifeOf(context, 0);
  enterLife(life, "connect");
  const ncclResult_t result = __real_connectNet(context, device, trafficClass, handle, connection, kernels);
  if (result == ncclSuccess && *connection != NULL) own(*connection, life);
  leaveLife(life);
  return result;
}

WRAPPED(acceptNet, (void* listener, void** connection, ncclNetDeviceHandle_t** kernels)) {
  TracedLife* life = lifeOf(listener, 0);
  enterLife(life, "accept");
  const ncclResult_t result = __real_acceptNet(listener, connection, kernels);
  if (result == ncclSuccess && *connection != NULL) own(*connection, life);
  leaveLife(life);
  return result;
}

WRAPPED(closeListener, (void* listener)) {
  TracedLife* life = lifeOf(listener, 1);
  enterLife(life, "closeListen");
  const ncclResult_t result = __real_closeListener(listener);
  leaveLife(life);
  return result;
}

WRAPPED(closeConnection, (void* connection)) {
  TracedLife* life = lifeOf(connection, 1);
  enterLife(life, "closeSend or closeRecv");
  const ncclResult_t result = __real_closeConnection(connection);
  leaveLife(life);
  return result;
}

WRAPPED(registerMemory, (void* comm, void* data, size_t bytes, int type, void** handle)) {
  TracedLife* life = lifeOf(comm, 0);
  enterLife(life, "regMr");
  const ncclResult_t result = __real_registerMemory(comm, data, bytes, type, handle);
  leaveLife(life);
  return result;
}

WRAPPED(deregisterMemory, (void* comm, void* handle)) {
  TracedLife* life = lifeOf(comm, 0);
  enterLife(life, "deregMr");
  const ncclResult_t result = __real_deregisterMemory(comm, handle);
  leaveLife(life);
  return result;
}

WRAPPED(sendMessage, (void* comm, void* data, size_t bytes, int tag, void* handle, void* event, void** request)) {
  TracedLife* life = lifeOf(comm, 0);
  enterLife(life, "isend");
  const ncclResult_t result = __real_sendMessage(comm, data, bytes, tag, handle, event, request);
  if (result == ncclSuccess && *request != NULL) {
    own(*request, life);
    atomic_fetch_add(&sent, bytes);
  }
  leaveLife(life);
  return result;
}

WRAPPED(receiveMessages, (void* comm, int n, void** data, const size_t* sizes, const int* tags, void** handles,
                          void** events, void** request)) {
  TracedLife* life = lifeOf(comm, 0);
  enterLife(life, "irecv");
  const ncclResult_t result = __real_receiveMessages(comm, n, data, sizes, tags, handles, events, request);
  if (result == ncclSuccess && *request != NULL) own(*request, life);
  leaveLife(life);
  return result;
}

/* A request that is done goes, and its address may be another's at once. */
WRAPPED(testRequest, (void* request, int* done, int* sizes)) {
  TracedLife* life = lifeOf(request, 1);
  enterLife(life, "test");
  const ncclResult_t result = __real_testRequest(request, done, sizes);
  if (!*done) own(request, life);
  leaveLife(life);
  return result;
}
