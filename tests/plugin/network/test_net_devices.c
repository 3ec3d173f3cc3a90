/* The devices of a test plugin, those that are there from the beginning and those that were fused. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plugin/network/test_net_faults.h"
#include "plugin/network/test_net_parts.h"

enum { kMostDevices = 32 };

/* What a table knows of its devices. */
typedef struct {
  char names[kMostDevices][32];
  char paths[kMostDevices][64];
  struct {
    int n, parts[kTestNetMost];
  } fused[kMostDevices]; /* only with "ports" */
  int nFused;
} DeviceList;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* communicators may be made by several threads */
static DeviceList lists[2];

static DeviceList* listOf(int ofCollNet) {
  return &lists[ofCollNet && !hasFault("one-list")];
}

static int physicalDevices(void) {
  if (hasFault("ports")) return (int)faultValue("ports");
  return hasFault("two-devices") ? 2 : 1;
}

ncclResult_t countDevices(int ofCollNet, int* count) {
  if (ofCollNet && faultStrikes("coll-devices")) return toldToFail("collNet devices");
  if (!ofCollNet) sleepAsTold("devices-sleeps");
  pthread_mutex_lock(&mutex);
  *count = hasFault("zero-devices") ? 0 : physicalDevices() + listOf(ofCollNet)->nFused;
  pthread_mutex_unlock(&mutex);
  return faultStrikes("devices") ? toldToFail("devices") : ncclSuccess;
}

/* Callers on other threads read the text that they were given: it is not written again where it stays the same. */
static void writeOnce(char* text, size_t room, const char* format, ...) {
  char now[64];
  va_list args;
  va_start(args, format);
  vsnprintf(now, room < sizeof now ? room : sizeof now, format, args);
  va_end(args);
  if (strcmp(now, text) != 0) strcpy(text, now);
}

/* Of a device with "ports": where it is, or that it is made of others. */
static void describePorts(DeviceList* list, int device, ncclNetProperties_v12_t* props) {
  const int at = device - physicalDevices(); /* among the fused */
  const int first = at < 0 ? device : list->fused[at].parts[0];
  writeOnce(list->paths[device], sizeof list->paths[0], "/sys/devices/pci0000:1a/0000:1a:01.0/0000:%02x:00.%d",
            (unsigned)(0x1b + first / 2), first % 2);
  props->pciPath = list->paths[device];
  props->port = 1 + first % 2;
  if (at < 0) return;
  const int n = list->fused[at].n;
  writeOnce(list->names[device], sizeof list->names[0], "test%d+%d", first, n - 1);
  props->speed *= n;
  if (hasFault("no-parts")) return;
  props->vProps.ndevs = n;
  memcpy(props->vProps.devs, list->fused[at].parts, sizeof props->vProps.devs);
}

static void describeEveryField(DeviceList* list, int device, ncclNetProperties_v12_t* props) {
  static const ncclNetVDeviceProps_v12_t parts = {.ndevs = 4, .devs = {7, 5, 4, 6}};
  writeOnce(list->paths[device], sizeof list->paths[0], "/sys/devices/pci0000:00/0000:00:0%d.0", device + 1);
  props->pciPath = list->paths[device];
  props->guid = 0xfedcba9876543210;
  props->ptrSupport = NCCL_PTR_HOST | NCCL_PTR_CUDA | NCCL_PTR_DMABUF;
  props->regIsGlobal = 1;
  props->forceFlush = 1;
  props->speed = 25000;
  props->port = 3;
  props->latency = 1.5F;
  props->maxComms = 77;
  props->maxRecvs = 5;
  props->netDeviceVersion = 9;
  props->vProps = parts;
  props->maxP2pBytes = 0x123456789;
  props->maxCollBytes = 0x98765432;
  props->maxMultiRequestSize = 4;
  props->railId = 0x1234;
  props->planeId = -0x1234;
}

/* Under the mutex. */
static void describe(DeviceList* list, int device, ncclNetProperties_v12_t* props) {
  const int isFused = hasFault("ports") && device >= physicalDevices();
  if (!isFused) writeOnce(list->names[device], sizeof list->names[0], "test%d", device);
  props->name = hasFault("no-name") ? NULL : list->names[device];
  props->guid = (uint64_t)device + 1;
  props->ptrSupport = NCCL_PTR_HOST;
  if (hasFault("gdr")) props->ptrSupport |= NCCL_PTR_CUDA;
  if (hasFault("gdr") && hasFault("dma-buf")) props->ptrSupport |= NCCL_PTR_DMABUF;
  props->port = 1;
  props->latency = 2;
  props->maxComms = 1024;
  props->maxRecvs = hasFault("groups") ? kTestNetMost : 1;
  if (hasFault("unpack")) props->netDeviceType = NCCL_NET_DEVICE_UNPACK;
  if (hasFault("unknown-device")) props->netDeviceType = (ncclNetDeviceType)7;
  props->vProps.ndevs = 1;
  props->vProps.devs[0] = device;
  props->maxP2pBytes = hasFault("no-p2p-bytes") ? 0 : (size_t)MAX_NET_SIZE;
  props->maxCollBytes = (size_t)MAX_COLLNET_SIZE;
  if (hasFault("ports")) describePorts(list, device, props);
  if (hasFault("every-field")) describeEveryField(list, device, props);
}

ncclResult_t describeDevice(int ofCollNet, int device, int isBlank, int version, TestDevice* said) {
  TestNetRecord* record = beginRecord();
  record->properties.device = device;
  record->properties.isBlank = isBlank;
  recordIsDone();
  memset(said, 0, sizeof *said);
  said->props.speed = 10000 + version;
  said->isFull = !hasFault("few-fields");
  pthread_mutex_lock(&mutex);
  DeviceList* list = listOf(ofCollNet);
  const int there = hasFault("ports") ? physicalDevices() + list->nFused : 4;
  if (device >= 0 && device < there) describe(list, device, &said->props);
  pthread_mutex_unlock(&mutex);
  if (device >= 0 && device < there) return ncclSuccess;
  return failed("getProperties", "no such device", ncclInvalidArgument);
}

ncclResult_t fuseDevices(int ofCollNet, int* device, int n, const int* parts) {
  TestNetRecord* record = beginRecord();
  (ofCollNet ? &record->collFusion : &record->fusion)->n = n;
  for (int i = 0; i < n && i < kTestNetMost; ++i) {
    (ofCollNet ? record->collFusion.devices : record->fusion.devices)[i] = parts[i];
  }
  recordIsDone();
  countUp(ofCollNet ? &testCounts.collFusions : &testCounts.fusions, 1);
  if (n < 2) return failed("makeVDevice", "one device is no group", ncclInvalidArgument);
  if (faultStrikes(ofCollNet ? "coll-fuse" : "fuse")) return toldToFail("makeVDevice");
  if (hasFault("no-fused")) return ncclSuccess;
  *device = 3;
  if (!hasFault("ports")) return ncclSuccess;
  pthread_mutex_lock(&mutex);
  DeviceList* list = listOf(ofCollNet);
  *device = physicalDevices() + list->nFused;
  list->fused[list->nFused].n = n;
  for (int i = 0; i < n && i < kTestNetMost; ++i) list->fused[list->nFused].parts[i] = parts[i];
  ++list->nFused;
  pthread_mutex_unlock(&mutex);
  return ncclSuccess;
}
