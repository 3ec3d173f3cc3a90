/* What the test plugins of all versions are made of: the functions of the newest interface, and where versions differ
 * what tells them apart. test_net.c and test_collnet.c make the tables of a version of it. C and C++. */
#ifndef TEST_NET_PARTS_H_
#define TEST_NET_PARTS_H_

#include "nccl_net.h"
#include "plugin/network/test_net.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- test_net_state.c: what the plugin knows of itself ---- */

/** Any thread. */
void countUp(int* number, int by);
extern TestNetCounts testCounts;
/** The record, or with nobody to read it some other place, until recordIsDone(). */
TestNetRecord* beginRecord(void);
void recordIsDone(void);

ncclResult_t failed(const char* call, const char* why, ncclResult_t code);
ncclResult_t toldToFail(const char* call);
ncclResult_t tellEvent(void** event, int type, void* parent, int sends, size_t bytes);

/** A part of a plugin begins: its errors go to `log`. `context` null: the version has none. `profile` is called of the
 * net's messages where it is not null. */
ncclResult_t beginNet(int version, void** context, const uint64_t* commId, const int* trafficClass,
                      ncclDebugLogger_t log, ncclProfilerCallback_t profile);
ncclResult_t beginCollNet(int version, void** context, const uint64_t* commId, ncclDebugLogger_t log);
ncclResult_t endNet(void* context);
ncclResult_t endCollNet(void* context);
/** Whether that is a context of the net or of the collNet; for versions without contexts it is null. */
int isContext(void* context, int ofCollNet);

/* ---- test_net_devices.c ---- */

/** What a device says of itself, in words of the newest interface. */
typedef struct {
  ncclNetProperties_v12_t props;
  int isFull; /**< what versions after the oldest one have is to be written as well */
} TestDevice;

ncclResult_t countDevices(int ofCollNet, int* count);
/** `isBlank`: what the properties were before. */
ncclResult_t describeDevice(int ofCollNet, int device, int isBlank, int version, TestDevice* said);
ncclResult_t fuseDevices(int ofCollNet, int* device, int n, const int* parts);

/* ---- test_net_messages.c ---- */

enum { kNoTrafficClass = -2 };

ncclResult_t listenNet(int ofCollNet, void* context, int device, void* handle, void** listener);
ncclResult_t connectNet(void* context, int device, int trafficClass, void* handle, void** connection,
                        ncclNetDeviceHandle_t** kernels);
ncclResult_t acceptNet(void* listener, void** connection, ncclNetDeviceHandle_t** kernels);
ncclResult_t closeListener(void* listener);
ncclResult_t closeConnection(void* connection);
ncclResult_t registerMemory(void* comm, void* data, size_t bytes, int type, void** handle);
ncclResult_t registerDmaBuf(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd, void** handle);
ncclResult_t deregisterMemory(void* comm, void* handle);
/** `event` null: nobody wants to hear of it, or the version does not say. `events` likewise. */
ncclResult_t sendMessage(void* comm, void* data, size_t bytes, int tag, void* handle, void* event, void** request);
ncclResult_t receiveMessages(void* comm, int n, void** data, const size_t* sizes, const int* tags, void** handles,
                             void** events, void** request);
ncclResult_t flushMessages(void* comm, int n, void** data, int* sizes, void** handles, void** request);
ncclResult_t testRequest(void* request, int* done, int* sizes);
/** How many zeros there are, up to kTestNetMost. */
int countZeros(const int* sizes);
ncclResult_t countOffloadCall(void);

#ifdef __cplusplus
}
#endif

#endif
