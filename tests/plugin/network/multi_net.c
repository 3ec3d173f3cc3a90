/* A network plugin over UNIX sockets that receives up to eight messages at once, and matches them as strictly as
 * networks for RDMA do: the receiver tells the sender of each receive that it posts; a message goes into a free place
 * of its tag in the oldest one that has not got all of its messages, or is refused; and only when all are there do they
 * leave, as one.
 *
 * MULTI_NET is a comma list: "gdr": it reads and writes GPU memory; "busy": one post of three has no room.
 * The log says of each receiving end how many receives it has had, and of how many messages at most. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nccl_net.h"
#include "plugin/network/test_net_memory.h"
#include "plugin/network/test_net_socket.h"

enum { kMostRecvs = 8 };
static ncclDebugLogger_t logger;

#define WARN(...) logger(NCCL_LOG_WARN, NCCL_NET, __FILE__, __LINE__, __VA_ARGS__)
#define INFO(...) logger(NCCL_LOG_INFO, NCCL_NET, __FILE__, __LINE__, __VA_ARGS__)

static int told(const char* word) {
  const char* const said = getenv("MULTI_NET");
  return said != NULL && strstr(said, word) != NULL;
}

/* ---- what is on its way ---- */

/* Bytes in one direction, from or to several places. */
typedef struct {
  struct iovec parts[1 + kMostRecvs];
  size_t n, at;
} Transfer;

static void add(Transfer* transfer, void* data, size_t bytes) {
  if (bytes == 0) return;
  transfer->parts[transfer->n].iov_base = data;
  transfer->parts[transfer->n++].iov_len = bytes;
}
static int isAcross(const Transfer* transfer) {
  return transfer->at == transfer->n;
}
/* Whether the socket took or had any. */
static int move(Transfer* transfer, int fd, int out, const char** error) {
  if (isAcross(transfer)) return 0;
  const size_t moved = socketMove(fd, out, transfer->parts + transfer->at, transfer->n - transfer->at, error);
  while (!isAcross(transfer) && transfer->parts[transfer->at].iov_len == 0) ++transfer->at;
  return moved > 0;
}

typedef struct Comm Comm;

/* A send, a receive of several messages, or a flush. */
typedef struct Request {
  Comm* comm;             /* null: a flush */
  struct Request* next;   /* of the same end */
  struct Request* behind; /* a receive's: posted later */
  int n, done;
  char* data[kMostRecvs];
  uint64_t bytes[kMostRecvs]; /* a receive: how much fits, and then how much came */
} Request;

/* What a receiver tells of a receive. */
typedef struct {
  uint64_t n;
  int64_t tags[kMostRecvs];
  uint64_t room[kMostRecvs];
} Posted;

/* A sender's: a receive of its peer. */
typedef struct Place {
  struct Place* next; /* posted later */
  Posted posted;
  Request* sends[kMostRecvs];
  uint64_t filled;
  uint64_t sizes[kMostRecvs]; /* in front of the messages */
  Transfer out;
} Place;

/* A receiver's: what it has yet to tell. */
typedef struct Telling {
  struct Telling* next;
  Posted posted;
  Transfer out;
} Telling;

struct Comm {
  int fd, sends;
  const char* error;
  Request* requests;
  int nRequests;
  unsigned dice;
  /* the sender's */
  Place *places, **placesEnd;
  Posted hearing;
  Transfer heard;
  /* the receiver's */
  Telling *telling, **tellingEnd;
  Request *waiting, **waitingEnd;
  enum { Between, Header, Content } stage;
  uint64_t came[kMostRecvs];
  Transfer in;
  unsigned long receives;
  int most;
};

static Comm* newComm(int fd, int sends) {
  Comm* comm = calloc(1, sizeof *comm);
  comm->fd = fd;
  comm->sends = sends;
  comm->dice = 7;
  comm->placesEnd = &comm->places;
  comm->tellingEnd = &comm->telling;
  comm->waitingEnd = &comm->waiting;
  return comm;
}

static Request* newRequest(Comm* comm, int n) {
  if (comm->nRequests == NCCL_NET_MAX_REQUESTS * (comm->sends ? kMostRecvs : 1)) {
    comm->error = "more requests than a network has to have"; /* a network may refuse, but need not notice */
    return NULL;
  }
  Request* made = calloc(1, sizeof *made);
  made->comm = comm;
  made->n = n;
  made->next = comm->requests;
  comm->requests = made;
  ++comm->nRequests;
  return made;
}
static void forget(Request* request) {
  Request** at = &request->comm->requests;
  while (*at != request) at = &(*at)->next;
  *at = request->next;
  --request->comm->nRequests;
  free(request);
}

/* ---- the sender's end ---- */

static void hear(Comm* comm) {
  for (;;) {
    if (isAcross(&comm->heard)) {
      memset(&comm->heard, 0, sizeof comm->heard);
      add(&comm->heard, &comm->hearing, sizeof comm->hearing);
    }
    if (!move(&comm->heard, comm->fd, 0, &comm->error)) return;
    if (!isAcross(&comm->heard)) continue;
    Place* place = calloc(1, sizeof *place);
    place->posted = comm->hearing;
    *comm->placesEnd = place;
    comm->placesEnd = &place->next;
  }
}

static void dropOldestPlace(Comm* comm) {
  Place* const oldest = comm->places;
  comm->places = oldest->next;
  if (comm->places == NULL) comm->placesEnd = &comm->places;
  free(oldest);
}

static void progressSender(Comm* comm) {
  hear(comm);
  while (comm->error == NULL && comm->places != NULL && comm->places->filled == comm->places->posted.n) {
    Place* const oldest = comm->places;
    const int moved = move(&oldest->out, comm->fd, 1, &comm->error);
    if (isAcross(&oldest->out)) {
      for (uint64_t i = 0; i < oldest->posted.n; ++i) oldest->sends[i]->done = 1;
      dropOldestPlace(comm);
    } else if (!moved) {
      return;
    }
  }
}

static Request* fill(Comm* comm, Place* place, uint64_t i, char* data, size_t bytes) {
  if (bytes > place->posted.room[i]) comm->error = "a message is longer than its receive";
  Request* const made = comm->error == NULL ? newRequest(comm, 1) : NULL;
  if (made == NULL) return NULL;
  made->data[0] = data;
  made->bytes[0] = place->sizes[i] = bytes;
  place->sends[i] = made;
  if (++place->filled == place->posted.n) {
    add(&place->out, place->sizes, sizeof place->sizes);
    for (uint64_t k = 0; k < place->posted.n; ++k) add(&place->out, place->sends[k]->data[0], place->sizes[k]);
  }
  progressSender(comm);
  return made;
}

/* Null: not now. */
static Request* sendInto(Comm* comm, char* data, size_t bytes, int tag) {
  if (comm->error == NULL) progressSender(comm);
  Place* place = comm->places;
  while (place != NULL && place->filled == place->posted.n) place = place->next;
  for (uint64_t i = 0; place != NULL && i < place->posted.n; ++i) {
    if (place->posted.tags[i] == tag && place->sends[i] == NULL) return fill(comm, place, i, data, bytes);
  }
  return NULL;
}

/* ---- the receiver's end ---- */

static int moveIn(Comm* comm) {
  while (!isAcross(&comm->in)) {
    if (!move(&comm->in, comm->fd, 0, &comm->error)) return 0;
  }
  return 1;
}

/* Whether the oldest receive has come to its end. */
static int fillOldest(Comm* comm) {
  Request* const oldest = comm->waiting;
  if (comm->stage == Between) {
    memset(&comm->in, 0, sizeof comm->in);
    add(&comm->in, comm->came, sizeof comm->came);
    comm->stage = Header;
  }
  if (!moveIn(comm)) return 0;
  if (comm->stage == Header) {
    memset(&comm->in, 0, sizeof comm->in);
    for (int i = 0; i < oldest->n; ++i) add(&comm->in, oldest->data[i], comm->came[i]);
    comm->stage = Content;
  }
  if (!moveIn(comm)) return 0;
  memcpy(oldest->bytes, comm->came, sizeof oldest->bytes);
  oldest->done = 1;
  comm->waiting = oldest->behind;
  if (comm->waiting == NULL) comm->waitingEnd = &comm->waiting;
  comm->stage = Between;
  return 1;
}

static void progressReceiver(Comm* comm) {
  /* A peer that is gone and cannot be told may have sent what is still to be read; reading finds the end. */
  const char* gone = NULL;
  while (gone == NULL && comm->telling != NULL) {
    Telling* const first = comm->telling;
    const int moved = move(&first->out, comm->fd, 1, &gone);
    if (isAcross(&first->out)) {
      comm->telling = first->next;
      if (comm->telling == NULL) comm->tellingEnd = &comm->telling;
      free(first);
    } else if (!moved) {
      break;
    }
  }
  while (comm->error == NULL && comm->waiting != NULL && fillOldest(comm)) {
  }
}

static void progress(Comm* comm) {
  if (comm->error != NULL) return;
  comm->sends ? progressSender(comm) : progressReceiver(comm);
}

static Request* receiveFrom(Comm* comm, int n, void** data, const size_t* sizes, const int* tags) {
  Request* const made = newRequest(comm, n);
  if (made == NULL) return NULL;
  Telling* const telling = calloc(1, sizeof *telling);
  telling->posted.n = (uint64_t)n;
  for (int i = 0; i < n; ++i) {
    made->data[i] = data[i];
    made->bytes[i] = telling->posted.room[i] = sizes[i];
    telling->posted.tags[i] = tags[i];
  }
  add(&telling->out, &telling->posted, sizeof telling->posted);
  *comm->tellingEnd = telling;
  comm->tellingEnd = &telling->next;
  *comm->waitingEnd = made;
  comm->waitingEnd = &made->behind;
  ++comm->receives;
  if (comm->most < n) comm->most = n;
  progress(comm);
  return made;
}

/* ---- the table ---- */

static ncclResult_t init(void** context, uint64_t commId, ncclNetCommConfig_v12_t* config, ncclDebugLogger_t log,
                         ncclProfilerCallback_t profile) {
  (void)commId, (void)config, (void)profile;
  if (logger == NULL) logger = log;
  *context = NULL;
  return ncclSuccess;
}
static ncclResult_t finalize(void* context) {
  (void)context;
  return ncclSuccess;
}
static ncclResult_t devices(int* count) {
  *count = 1;
  return ncclSuccess;
}
static ncclResult_t getProperties(int device, ncclNetProperties_v12_t* props) {
  static char name[] = "multi0";
  memset(props, 0, sizeof *props);
  props->name = name;
  props->guid = 1;
  props->ptrSupport = told("gdr") ? NCCL_PTR_HOST | NCCL_PTR_CUDA : NCCL_PTR_HOST;
  props->speed = 40000;
  props->port = 1;
  props->maxComms = 65536;
  props->maxRecvs = kMostRecvs;
  props->vProps.ndevs = 1;
  props->vProps.devs[0] = device;
  props->maxP2pBytes = MAX_NET_SIZE;
  props->maxCollBytes = MAX_COLLNET_SIZE;
  props->railId = props->planeId = NCCL_NET_ID_UNDEF;
  return ncclSuccess;
}

static ncclResult_t listenAt(void* context, int device, void* handle, void** listener) {
  (void)context, (void)device;
  const int fd = socketListen(handle);
  if (fd < 0) {
    WARN("multi_net: no socket to listen on: %s", strerror(errno));
    return ncclSystemError;
  }
  int* const made = malloc(sizeof *made);
  *made = fd;
  *listener = made;
  return ncclSuccess;
}
static ncclResult_t connectTo(void* context, int device, void* handle, void** connection,
                              ncclNetDeviceHandle_t** kernels) {
  (void)context, (void)device, (void)kernels;
  const int fd = socketConnect(handle);
  *connection = fd < 0 ? NULL : newComm(fd, 1);
  if (fd >= 0 || errno == EAGAIN) return ncclSuccess;
  WARN("multi_net: connecting failed: %s", strerror(errno));
  return ncclRemoteError;
}
static ncclResult_t acceptFrom(void* listener, void** connection, ncclNetDeviceHandle_t** kernels) {
  (void)kernels;
  const int fd = socketAccept(*(const int*)listener);
  *connection = fd < 0 ? NULL : newComm(fd, 0);
  if (fd >= 0 || errno == EAGAIN) return ncclSuccess;
  WARN("multi_net: accepting failed: %s", strerror(errno));
  return ncclSystemError;
}
static ncclResult_t closeListen(void* listener) {
  close(*(const int*)listener);
  free(listener);
  return ncclSuccess;
}
static ncclResult_t closeComm(void* connection) {
  Comm* const comm = connection;
  closeMemory(comm);
  if (!comm->sends) INFO("multi_net: %lu receives of up to %d messages", comm->receives, comm->most);
  while (comm->requests != NULL) forget(comm->requests);
  while (comm->places != NULL) dropOldestPlace(comm);
  while (comm->telling != NULL) {
    Telling* const first = comm->telling;
    comm->telling = first->next;
    free(first);
  }
  close(comm->fd);
  free(comm);
  return ncclSuccess;
}

static ncclResult_t regMr(void* comm, void* data, size_t bytes, int type, void** handle) {
  *handle = data;
  const int known = type == NCCL_PTR_HOST || (type == NCCL_PTR_CUDA && told("gdr"));
  if (known && enterMemory(comm, data, bytes, data)) return ncclSuccess;
  WARN("multi_net: this memory cannot be registered");
  return ncclInternalError;
}
static ncclResult_t deregMr(void* comm, void* handle) {
  leaveMemory(comm, handle);
  return ncclSuccess;
}

static ncclResult_t answer(Comm* comm, Request* made, void** request) {
  *request = made;
  if (comm->error == NULL) return ncclSuccess;
  WARN("multi_net: %s failed: %s", comm->sends ? "sending" : "receiving", comm->error);
  return ncclRemoteError;
}
/* Not in turn: it could be the same lane's turn every time. */
static int isBusy(Comm* comm) {
  if (!told("busy")) return 0;
  comm->dice = comm->dice * 1103515245 + 12345;
  return (comm->dice >> 16) % 3 == 0;
}
static ncclResult_t isend(void* to, void* data, size_t bytes, int tag, void* handle, void* event, void** request) {
  (void)event;
  Comm* const comm = to;
  Request* const made = isBusy(comm) ? NULL : sendInto(comm, data, bytes, tag);
  if (made != NULL) sendMemory(to, data, bytes, handle);
  return answer(comm, made, request);
}
static ncclResult_t irecv(void* from, int n, void** data, size_t* sizes, int* tags, void** handles, void** events,
                          void** request) {
  (void)handles, (void)events;
  Comm* const comm = from;
  if (n < 1 || n > kMostRecvs) comm->error = "so many receives were not promised";
  if (comm->error != NULL) return answer(comm, NULL, request);
  return answer(comm, isBusy(comm) ? NULL : receiveFrom(comm, n, data, sizes, tags), request);
}
/* A request that the second test finds done. */
static ncclResult_t iflush(void* from, int n, void** data, int* sizes, void** handles, void** request) {
  (void)data, (void)handles;
  Comm* const comm = from;
  for (int i = 0; i < n; ++i) {
    if (sizes[i] <= 0) comm->error = "nothing is to be flushed";
  }
  if (comm->error != NULL) return answer(comm, NULL, request);
  *request = calloc(1, sizeof(Request));
  return ncclSuccess;
}
static ncclResult_t test(void* posted, int* done, int* sizes) {
  Request* const request = posted;
  *done = request->done;
  if (request->comm == NULL) {
    if (request->done)
      free(request);
    else
      request->done = 1;
    return ncclSuccess;
  }
  Comm* const comm = request->comm;
  if (!request->done) progress(comm);
  *done = request->done;
  if (!request->done) return answer(comm, request, &posted);
  for (int i = 0; sizes != NULL && i < request->n; ++i) sizes[i] = (int)request->bytes[i];
  forget(request);
  return ncclSuccess;
}

NCCL_PLUGIN_EXPORT extern ncclNet_v12_t ncclNetPlugin_v12;
ncclNet_v12_t ncclNetPlugin_v12 = {
    .name = "multi",
    .init = init,
    .devices = devices,
    .getProperties = getProperties,
    .listen = listenAt,
    .connect = connectTo,
    .accept = acceptFrom,
    .regMr = regMr,
    .deregMr = deregMr,
    .isend = isend,
    .irecv = irecv,
    .iflush = iflush,
    .test = test,
    .closeSend = closeComm,
    .closeRecv = closeComm,
    .closeListen = closeListen,
    .finalize = finalize,
};
