/* What the test plugins tell the tests about how they were called, and how they are made to misbehave. C and C++.
 *
 * A test plugin reads TEST_NET_FAULT_V<version>, or else TEST_NET_FAULT, when it is first initialised after loading: a
 * comma list of
 *   init, devices, connect, accept, isend, irecv, test   an error in that call; "isend@100": after 100 good ones
 *   zero-devices, unpack, unknown-device, no-p2p-bytes, no-name, two-devices    answers about devices
 *   ports=N   N devices, two ports each of adapters 1b:00, 1c:00, …; what is fused is a device behind them
 *   every-field  no field of a device's properties has the value that the library takes where nothing is said
 *   few-fields   only the fields of the oldest version are written; the rest stays as the library had it
 *   fuse[@N]  an error in makeVDevice
 *   no-fused  makeVDevice succeeds without a device
 *   no-parts  fused devices do not say what they are made of
 *   gdr       it reads and writes GPU memory, which a software GPU's is any memory; every second flush takes a test
 *   dma-buf   it registers dma-bufs; with gdr, its devices say so
 *   no-dma-bufs, no-gpu-memory   an error in registrations of GPU memory as a dma-buf, or by its address
 *   no-handles  registrations succeed without a handle
 *   missing   its table lacks isend
 *   groups    irecv takes up to eight messages; of several, message i is done at once with i bytes less than fit
 *   hang[@N]  no request completes (after N that did)
 *   short[@N] receives report half of what came
 *   delay=US  requests complete that much later than they could
 *   reorder   every second request completes only when a later one has, or after 2 ms
 *   busy      every second isend and irecv has no room; the first connects and accepts are too early
 *   waits     accept waits for a connect, and the first test of a send for the accept: 20 s at most, then an error
 *   init-sleeps=MS; devices-, listen-, connect-, accept-, regMr-sleeps=MS   that call takes so long
 *   no-connection  connect never has a connection
 *   in-order  an error if test is called for another request of a connection than the oldest
 *   no-sizes  test does not write sizes
 *   one-endpoint  all connections of a process need one endpoint: where one is closed with requests under way, that
 *             goes, the close is an error, and so are sends, receives and tests from then on
 *   odd-code  errors are no result codes
 *   silent    errors without a message
 *   records   the plugin keeps what each call was given (TestNetRecord)
 *   coll-init an error in collNet's init
 *   coll-devices[@N]  an error in collNet's devices
 *   coll-fuse an error in collNet's makeVDevice
 *   coll-busy every second collective has no room
 *   one-list  collNet and net share their list of devices: what one fuses the other has as well
 * TEST_NET_SETS=NAME=VALUE;…  init puts these into the environment, where it has no such names
 * TEST_COLLNET_SETS=…  the same for collNet's init
 * TEST_NET_STALL=TAG:FILE   isend has no room for messages with that tag (their sender's rank) while the file exists */
#ifndef TEST_NET_H_
#define TEST_NET_H_

#include "nccl_net.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Counted since the library was loaded. */
typedef struct {
  int inits, finalizes;
  int openEnds;         /**< connections and listeners that are not closed */
  int gpuRegistrations; /**< of GPU memory, taken back or not */
  int flushes;
  int registrations; /**< that are not taken back */
  int sawHint;       /**< times that *request was not null before a post */
  int strangers;     /**< calls with a context that no init gave, or that is finalized */
  int fusions;       /**< calls of the net's makeVDevice */
  int collFusions;   /**< of collNet's */
  int collInits, collFinalizes;
  int offloadCalls; /**< of getDeviceMr and irecvConsumed, which are for networks that kernels drive */
} TestNetCounts;

enum { kTestNetMost = 8 };

/** What a collective was given. */
typedef struct {
  void *comm, *send, *recv, *sendHandle, *recvHandle;
  size_t count; /**< iallreduce */
  int type, op; /**< iallreduce, ireducescatter */
  int parts;    /**< the rest: iallgather, ireducescatter */
  ncclNetSGE_v9_t part;
  size_t bytesPerRank, windowOffset, windowBytes;
} TestCollective;

/** With "records": what the last call of each function was given, since the library was loaded. Where net and collNet
 * have functions of one name and one meaning, of either. "Empty": the place for the result was null before the call. */
typedef struct {
  struct {
    uint64_t commId;
    int trafficClass; /**< -2: the version does not say at init */
    int hasLog, hasProfile, isEmpty;
    void* context; /**< that was given back */
  } init, collInit;
  struct {
    int device;
    int isBlank; /**< nothing but zeros, and what stands for "unknown" in fields that old plugins do not know */
  } properties;
  struct {
    void* context;
    int device, handleIsBlank, isEmpty;
  } listen, collListen;
  struct {
    void* context;
    int device, trafficClass; /**< -2: the version does not say at connect */
    void* handle;
    int calls;    /**< with this handle, as the plugin keeps in it */
    int knowsOwn; /**< it has what listen() has written */
    int isEmpty, offersKernels;
  } connect;
  struct {
    void* listener;
    int isEmpty, offersKernels;
  } accept;
  struct {
    void *comm, *data;
    size_t bytes;
    int type, isEmpty;
    int isDmaBuf; /**< the rest: regMrDmaBuf */
    uint64_t offset;
    int fd;
  } registration;
  struct {
    void *comm, *handle;
  } deregistration;
  struct {
    void *comm, *data, *handle, *event;
    size_t bytes;
    int tag, isEmpty;
  } send;
  struct {
    void *comm, *data[kTestNetMost], *handles[kTestNetMost], *events[kTestNetMost];
    size_t sizes[kTestNetMost];
    int tags[kTestNetMost];
    int n, isEmpty;
  } receive, flush;
  struct {
    void* request;
    int offersSizes; /**< how many zeros there are at `sizes`, up to kTestNetMost */
  } test, collTest;
  struct {
    void *sender, *receiver, *listener, *collective;
  } closed;
  struct {
    int n, devices[kTestNetMost];
  } fusion, collFusion;
  void *finalized, *collFinalized; /**< contexts */
  struct {
    int n, rank, isEmpty;
    void *listener, *handles[kTestNetMost];
  } collConnect;
  struct {
    int type, op, isEmpty;
  } collSupport;
  TestCollective allReduce, allGather, reduceScatter;
  struct {
    void *comm, *data, *handle;
    size_t bytes;
    int isEmpty;
  } collFlush;
} TestNetRecord;

/** What profilers see of a message (the event's netPlugin.data). */
typedef struct {
  int sends;
  size_t bytes;
} TestNetEvent;
enum { kTestNetEventId = 0x7e << 16 | 1 };

/** Each test plugin exports these as "testNetCounts" and "testNetRecord"; the latter is a copy. */
typedef const TestNetCounts* TestNetCountsFunction(void);
typedef TestNetRecord TestNetRecordFunction(void);

#ifdef __cplusplus
}
#endif

#endif
