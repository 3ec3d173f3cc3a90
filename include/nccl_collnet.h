/* Part of nccl_net.h: networks that reduce and gather by themselves (collNet), versions 6 to 12. C99 and C++.
 *
 * A collNet object stands beside a net object in the same library, and calls its devices by the same names and numbers.
 */
#ifndef NCCL_COLLNET_H_
#define NCCL_COLLNET_H_

#include "nccl_net_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One piece of memory. */
typedef struct {
  void *mhandle, *address;
  uint32_t size;
} ncclNetSGE_v8_t;
typedef struct {
  void *mhandle, *address;
  size_t size;
} ncclNetSGE_v9_t;
typedef ncclNetSGE_v9_t ncclNetSGE_v10_t;
typedef ncclNetSGE_v9_t ncclNetSGE_v11_t;
typedef ncclNetSGE_v9_t ncclNetSGE_v12_t;

/* ---- Signatures, each named after the version that introduced it ------------------------------------------ */

typedef ncclResult_t ncclCollNetInit_v11_fn(void** ctx, uint64_t commId, ncclDebugLogger_t log);
/** Joins `nranks` listeners, of which this one is number `rank`. Waits for all of them. *collComm NULL: not available.
 */
typedef ncclResult_t ncclCollNetConnect_v6_fn(void* handles[], int nranks, int rank, void* listenComm, void** collComm);
typedef ncclResult_t ncclCollNetReduceSupport_v6_fn(ncclDataType_t dataType, ncclRedOp_t redOp, int* supported);
/** `count` is in elements. All ranks issue the same sequence of operations. */
typedef ncclResult_t ncclCollNetIallreduce_v6_fn(void* collComm, void* sendData, void* recvData, int count,
                                                 ncclDataType_t dataType, ncclRedOp_t redOp, void* sendMhandle,
                                                 void* recvMhandle, void** request);
typedef ncclResult_t ncclCollNetIallreduce_v9_fn(void* collComm, void* sendData, void* recvData, size_t count,
                                                 ncclDataType_t dataType, ncclRedOp_t redOp, void* sendMhandle,
                                                 void* recvMhandle, void** request);
/** Of the gathered nranks * bytesPerRank bytes, those of [windowOffset, windowOffset + windowBytes) go to recvParts. */
typedef ncclResult_t ncclCollNetIallgather_v8_fn(void* collComm, void* sendData, int nRecvParts,
                                                 ncclNetSGE_v8_t* recvParts, size_t bytesPerRank, size_t windowOffset,
                                                 size_t windowBytes, void* sendMhandle, void** request);
typedef ncclResult_t ncclCollNetIallgather_v9_fn(void* collComm, void* sendData, int nRecvParts,
                                                 ncclNetSGE_v9_t* recvParts, size_t bytesPerRank, size_t windowOffset,
                                                 size_t windowBytes, void* sendMhandle, void** request);
/** The mirror image: sendParts hold the window of what is to be reduced, recvData gets what belongs to the caller. */
typedef ncclResult_t ncclCollNetIreducescatter_v8_fn(void* collComm, int nSendParts, ncclNetSGE_v8_t* sendParts,
                                                     void* recvData, size_t bytesPerRank, size_t windowOffset,
                                                     size_t windowBytes, ncclDataType_t dataType, ncclRedOp_t redOp,
                                                     void* recvMhandle, void** request);
typedef ncclResult_t ncclCollNetIreducescatter_v9_fn(void* collComm, int nSendParts, ncclNetSGE_v9_t* sendParts,
                                                     void* recvData, size_t bytesPerRank, size_t windowOffset,
                                                     size_t windowBytes, ncclDataType_t dataType, ncclRedOp_t redOp,
                                                     void* recvMhandle, void** request);
typedef ncclResult_t ncclCollNetIflush_v6_fn(void* collComm, void* data, int size, void* mhandle, void** request);

/* ---- collNet ---------------------------------------------------------------------------------------------- */

/** regMrDmaBuf, iallgather, ireducescatter and makeVDevice may be NULL. */
typedef struct {
  const char* name;
  ncclCollNetInit_v11_fn* init;
  ncclNetDevices_v6_fn* devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v12_t* props);
  ncclNetListen_v11_fn* listen;
  ncclCollNetConnect_v6_fn* connect;
  ncclCollNetReduceSupport_v6_fn* reduceSupport;
  ncclNetRegMr_v8_fn* regMr;
  ncclNetRegMrDmaBuf_v6_fn* regMrDmaBuf;
  ncclNetDeregMr_v6_fn* deregMr;
  ncclCollNetIallreduce_v9_fn* iallreduce;
  ncclCollNetIallgather_v9_fn* iallgather;
  ncclCollNetIreducescatter_v9_fn* ireducescatter;
  ncclCollNetIflush_v6_fn* iflush;
  ncclNetTest_v6_fn* test;
  ncclNetClose_v6_fn *closeColl, *closeListen;
  ncclNetMakeVDevice_v12_fn* makeVDevice;
  ncclNetFinalize_v11_fn* finalize;
} ncclCollNet_v12_t;

typedef struct {
  const char* name;
  ncclCollNetInit_v11_fn* init;
  ncclNetDevices_v6_fn* devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v11_t* props);
  ncclNetListen_v11_fn* listen;
  ncclCollNetConnect_v6_fn* connect;
  ncclCollNetReduceSupport_v6_fn* reduceSupport;
  ncclNetRegMr_v8_fn* regMr;
  ncclNetRegMrDmaBuf_v6_fn* regMrDmaBuf;
  ncclNetDeregMr_v6_fn* deregMr;
  ncclCollNetIallreduce_v9_fn* iallreduce;
  ncclCollNetIallgather_v9_fn* iallgather;
  ncclCollNetIreducescatter_v9_fn* ireducescatter;
  ncclCollNetIflush_v6_fn* iflush;
  ncclNetTest_v6_fn* test;
  ncclNetClose_v6_fn *closeColl, *closeListen;
  ncclNetMakeVDevice_v9_fn* makeVDevice;
  ncclNetFinalize_v11_fn* finalize;
} ncclCollNet_v11_t;

typedef struct {
  const char* name;
  ncclNetInit_v6_fn* init;
  ncclNetDevices_v6_fn* devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v9_t* props);
  ncclNetListen_v6_fn* listen;
  ncclCollNetConnect_v6_fn* connect;
  ncclCollNetReduceSupport_v6_fn* reduceSupport;
  ncclNetRegMr_v8_fn* regMr;
  ncclNetRegMrDmaBuf_v6_fn* regMrDmaBuf;
  ncclNetDeregMr_v6_fn* deregMr;
  ncclCollNetIallreduce_v9_fn* iallreduce;
  ncclCollNetIallgather_v9_fn* iallgather;
  ncclCollNetIreducescatter_v9_fn* ireducescatter;
  ncclCollNetIflush_v6_fn* iflush;
  ncclNetTest_v6_fn* test;
  ncclNetClose_v6_fn *closeColl, *closeListen;
  ncclNetMakeVDevice_v9_fn* makeVDevice;
} ncclCollNet_v9_t;
typedef ncclCollNet_v9_t ncclCollNet_v10_t;

typedef struct {
  const char* name;
  ncclNetInit_v6_fn* init;
  ncclNetDevices_v6_fn* devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v8_t* props);
  ncclNetListen_v6_fn* listen;
  ncclCollNetConnect_v6_fn* connect;
  ncclCollNetReduceSupport_v6_fn* reduceSupport;
  ncclNetRegMr_v8_fn* regMr;
  ncclNetRegMrDmaBuf_v6_fn* regMrDmaBuf;
  ncclNetDeregMr_v6_fn* deregMr;
  ncclCollNetIallreduce_v6_fn* iallreduce;
  ncclCollNetIallgather_v8_fn* iallgather;
  ncclCollNetIreducescatter_v8_fn* ireducescatter;
  ncclCollNetIflush_v6_fn* iflush;
  ncclNetTest_v6_fn* test;
  ncclNetClose_v6_fn *closeColl, *closeListen;
} ncclCollNet_v8_t;

typedef struct {
  const char* name;
  ncclNetInit_v6_fn* init;
  ncclNetDevices_v6_fn* devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v7_t* props);
  ncclNetListen_v6_fn* listen;
  ncclCollNetConnect_v6_fn* connect;
  ncclCollNetReduceSupport_v6_fn* reduceSupport;
  ncclNetRegMr_v6_fn* regMr;
  ncclNetRegMrDmaBuf_v6_fn* regMrDmaBuf;
  ncclNetDeregMr_v6_fn* deregMr;
  ncclCollNetIallreduce_v6_fn* iallreduce;
  ncclCollNetIflush_v6_fn* iflush;
  ncclNetTest_v6_fn* test;
  ncclNetClose_v6_fn *closeColl, *closeListen;
} ncclCollNet_v7_t;

typedef struct {
  const char* name;
  ncclNetInit_v6_fn* init;
  ncclNetDevices_v6_fn* devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v6_t* props);
  ncclNetListen_v6_fn* listen;
  ncclCollNetConnect_v6_fn* connect;
  ncclCollNetReduceSupport_v6_fn* reduceSupport;
  ncclNetRegMr_v6_fn* regMr;
  ncclNetRegMrDmaBuf_v6_fn* regMrDmaBuf;
  ncclNetDeregMr_v6_fn* deregMr;
  ncclCollNetIallreduce_v6_fn* iallreduce;
  ncclCollNetIflush_v6_fn* iflush;
  ncclNetTest_v6_fn* test;
  ncclNetClose_v6_fn *closeColl, *closeListen;
} ncclCollNet_v6_t;

#ifdef __cplusplus
}
#endif

#endif /* NCCL_COLLNET_H_ */
