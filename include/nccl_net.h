/* What a network plugin and the library say to each other: net and collNet interfaces, versions 6 to 12. C99 and C++.
 *
 * A network plugin is a shared library that exports one object named ncclNetPlugin_v12 (or an older version's name),
 * and perhaps ncclCollNetPlugin_v12. The library takes the newest one that it finds. New plugins need only what carries
 * the suffix _v12 and the constants; everything else describes plugins that exist. Names, layouts and values are fixed
 * by the programs that use them and never change.
 *
 * Every function returns ncclSuccess or an error, after a message of level WARN through the logger. No function may
 * wait for a peer, collNet's connect excepted: what cannot be done yet is said by a null pointer in place of the object
 * that was asked for, and the call comes again. Calls for different connections come from different threads at the same
 * time; isend, irecv, iflush and test of one connection come from one thread, while memory may be registered on the
 * same connection by another. */
#ifndef NCCL_NET_H_
#define NCCL_NET_H_

#include "nccl_collnet.h" /* nothing here needs it: plugins include this header alone */
#include "nccl_net_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- net -------------------------------------------------------------------------------------------------- */

/** A network. regMrDmaBuf, getDeviceMr, irecvConsumed, makeVDevice and setNetAttr may be NULL. */
typedef struct {
  const char* name; /**< what NCCL_NET selects */
  ncclNetInit_v11_fn* init;
  ncclNetDevices_v6_fn* devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v12_t* props);
  ncclNetListen_v11_fn* listen;
  ncclNetConnect_v11_fn* connect;
  ncclNetAccept_v7_fn* accept;
  ncclNetRegMr_v8_fn* regMr;
  ncclNetRegMrDmaBuf_v6_fn* regMrDmaBuf;
  ncclNetDeregMr_v6_fn* deregMr;
  ncclNetIsend_v10_fn* isend;
  ncclNetIrecv_v10_fn* irecv;
  ncclNetIflush_v6_fn* iflush;
  ncclNetTest_v6_fn* test;
  ncclNetClose_v6_fn *closeSend, *closeRecv, *closeListen;
  ncclNetGetDeviceMr_v7_fn* getDeviceMr;
  ncclNetIrecvConsumed_v7_fn* irecvConsumed;
  ncclNetMakeVDevice_v12_fn* makeVDevice;
  ncclNetFinalize_v11_fn* finalize;
  ncclNetSetNetAttr_v11_fn* setNetAttr;
} ncclNet_v12_t;

typedef struct {
  const char* name;
  ncclNetInit_v11_fn* init;
  ncclNetDevices_v6_fn* devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v11_t* props);
  ncclNetListen_v11_fn* listen;
  ncclNetConnect_v11_fn* connect;
  ncclNetAccept_v7_fn* accept;
  ncclNetRegMr_v8_fn* regMr;
  ncclNetRegMrDmaBuf_v6_fn* regMrDmaBuf;
  ncclNetDeregMr_v6_fn* deregMr;
  ncclNetIsend_v10_fn* isend;
  ncclNetIrecv_v10_fn* irecv;
  ncclNetIflush_v6_fn* iflush;
  ncclNetTest_v6_fn* test;
  ncclNetClose_v6_fn *closeSend, *closeRecv, *closeListen;
  ncclNetGetDeviceMr_v7_fn* getDeviceMr;
  ncclNetIrecvConsumed_v7_fn* irecvConsumed;
  ncclNetMakeVDevice_v9_fn* makeVDevice;
  ncclNetFinalize_v11_fn* finalize;
  ncclNetSetNetAttr_v11_fn* setNetAttr;
} ncclNet_v11_t;

typedef struct {
  const char* name;
  ncclNetInit_v10_fn* init;
  ncclNetDevices_v6_fn* devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v10_t* props);
  ncclNetListen_v6_fn* listen;
  ncclNetConnect_v10_fn* connect;
  ncclNetAccept_v7_fn* accept;
  ncclNetRegMr_v8_fn* regMr;
  ncclNetRegMrDmaBuf_v6_fn* regMrDmaBuf;
  ncclNetDeregMr_v6_fn* deregMr;
  ncclNetIsend_v10_fn* isend;
  ncclNetIrecv_v10_fn* irecv;
  ncclNetIflush_v6_fn* iflush;
  ncclNetTest_v6_fn* test;
  ncclNetClose_v6_fn *closeSend, *closeRecv, *closeListen;
  ncclNetGetDeviceMr_v7_fn* getDeviceMr;
  ncclNetIrecvConsumed_v7_fn* irecvConsumed;
  ncclNetMakeVDevice_v9_fn* makeVDevice;
} ncclNet_v10_t;

typedef struct {
  const char* name;
  ncclNetInit_v6_fn* init;
  ncclNetDevices_v6_fn* devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v9_t* props);
  ncclNetListen_v6_fn* listen;
  ncclNetConnect_v7_fn* connect;
  ncclNetAccept_v7_fn* accept;
  ncclNetRegMr_v8_fn* regMr;
  ncclNetRegMrDmaBuf_v6_fn* regMrDmaBuf;
  ncclNetDeregMr_v6_fn* deregMr;
  ncclNetIsend_v9_fn* isend;
  ncclNetIrecv_v9_fn* irecv;
  ncclNetIflush_v6_fn* iflush;
  ncclNetTest_v6_fn* test;
  ncclNetClose_v6_fn *closeSend, *closeRecv, *closeListen;
  ncclNetGetDeviceMr_v7_fn* getDeviceMr;
  ncclNetIrecvConsumed_v7_fn* irecvConsumed;
  ncclNetMakeVDevice_v9_fn* makeVDevice;
} ncclNet_v9_t;

typedef struct {
  const char* name;
  ncclNetInit_v6_fn* init;
  ncclNetDevices_v6_fn* devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v8_t* props);
  ncclNetListen_v6_fn* listen;
  ncclNetConnect_v7_fn* connect;
  ncclNetAccept_v7_fn* accept;
  ncclNetRegMr_v8_fn* regMr;
  ncclNetRegMrDmaBuf_v6_fn* regMrDmaBuf;
  ncclNetDeregMr_v6_fn* deregMr;
  ncclNetIsend_v6_fn* isend;
  ncclNetIrecv_v6_fn* irecv;
  ncclNetIflush_v6_fn* iflush;
  ncclNetTest_v6_fn* test;
  ncclNetClose_v6_fn *closeSend, *closeRecv, *closeListen;
  ncclNetGetDeviceMr_v7_fn* getDeviceMr;
  ncclNetIrecvConsumed_v7_fn* irecvConsumed;
} ncclNet_v8_t;

typedef struct {
  const char* name;
  ncclNetInit_v6_fn* init;
  ncclNetDevices_v6_fn* devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v7_t* props);
  ncclNetListen_v6_fn* listen;
  ncclNetConnect_v7_fn* connect;
  ncclNetAccept_v7_fn* accept;
  ncclNetRegMr_v6_fn* regMr;
  ncclNetRegMrDmaBuf_v6_fn* regMrDmaBuf;
  ncclNetDeregMr_v6_fn* deregMr;
  ncclNetIsend_v6_fn* isend;
  ncclNetIrecv_v6_fn* irecv;
  ncclNetIflush_v6_fn* iflush;
  ncclNetTest_v6_fn* test;
  ncclNetClose_v6_fn *closeSend, *closeRecv, *closeListen;
  ncclNetGetDeviceMr_v7_fn* getDeviceMr;
  ncclNetIrecvConsumed_v7_fn* irecvConsumed;
} ncclNet_v7_t;

typedef struct {
  const char* name;
  ncclNetInit_v6_fn* init;
  ncclNetDevices_v6_fn* devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v6_t* props);
  ncclNetListen_v6_fn* listen;
  ncclNetConnect_v6_fn* connect;
  ncclNetAccept_v6_fn* accept;
  ncclNetRegMr_v6_fn* regMr;
  ncclNetRegMrDmaBuf_v6_fn* regMrDmaBuf;
  ncclNetDeregMr_v6_fn* deregMr;
  ncclNetIsend_v6_fn* isend;
  ncclNetIrecv_v6_fn* irecv;
  ncclNetIflush_v6_fn* iflush;
  ncclNetTest_v6_fn* test;
  ncclNetClose_v6_fn *closeSend, *closeRecv, *closeListen;
} ncclNet_v6_t;

#ifdef __cplusplus
}
#endif

#endif /* NCCL_NET_H_ */
