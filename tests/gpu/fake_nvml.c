/* An NVML of a made-up machine with six GPUs at 0000:16:00.0 to 0000:1b:00.0, one more that is lost from the bus, and
   an NVSwitch at 0000:c0:00.0. GPU 0 has ten C2C links, one of them down, and no NVLink; GPU 1 does not answer about
   its NVLinks; GPU 2 has a link that carries no peer traffic; GPU 3 is divided into instances; GPU 4 and 5 are joined
   by two links, and GPU 5 has one to the switch and one that is down. GPU 1 and 2 are refused peer access; whether
   others and GPU 5 are is not answered. */
#include <stdio.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, LOST = 15 };
enum { GPUS = 6 };

struct PciInfo {
  char legacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};

struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, result;
  unsigned long long value;
};

EXPORTED int nvmlInit_v2(void);
EXPORTED const char* nvmlErrorString(int result);
EXPORTED int nvmlDeviceGetCount_v2(unsigned* count);
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** found);
EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char* busId, void** found);
EXPORTED int nvmlDeviceGetIndex(void* asked, unsigned* index);
EXPORTED int nvmlDeviceGetPciInfo_v3(void* asked, struct PciInfo* pci);
EXPORTED int nvmlDeviceGetCudaComputeCapability(void* asked, int* major, int* minor);
EXPORTED int nvmlDeviceGetMigMode(void* asked, unsigned* current, unsigned* pending);
EXPORTED int nvmlDeviceGetMaxPcieLinkGeneration(void* asked, unsigned* generation);
EXPORTED int nvmlDeviceGetMaxPcieLinkWidth(void* asked, unsigned* width);
EXPORTED int nvmlDeviceGetNvLinkState(void* asked, unsigned link, unsigned* active);
EXPORTED int nvmlDeviceGetNvLinkCapability(void* asked, unsigned link, unsigned capability, unsigned* has);
EXPORTED int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* asked, unsigned link, struct PciInfo* pci);
EXPORTED int nvmlDeviceGetNvLinkRemoteDeviceType(void* asked, unsigned link, unsigned* type);
EXPORTED int nvmlDeviceGetFieldValues(void* asked, int count, struct FieldValue* values);
EXPORTED int nvmlDeviceGetP2PStatus(void* a, void* b, unsigned what, unsigned* status);

static int started;
static char devices[GPUS];

static int numberOf(const void* asked) {
  return (int)((const char*)asked - devices);
}

static void fill(struct PciInfo* pci, unsigned bus) {
  memset(pci, 0, sizeof(*pci));
  pci->bus = bus;
  snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", bus);
}

int nvmlInit_v2(void) {
  started = 1;
  return SUCCESS;
}

const char* nvmlErrorString(int result) {
  return result == LOST ? "GPU is lost" : "something else";
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = GPUS + 1;
  return started ? SUCCESS : UNINITIALIZED;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** found) {
  if (index >= GPUS) return LOST;
  *found = &devices[index];
  return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* busId, void** found) {
  unsigned bus = 0;
  if (!started) return UNINITIALIZED;
  if (sscanf(busId, "0000:%x:00.0", &bus) != 1 || bus < 0x16 || bus > 0x1b) return NOT_FOUND;
  *found = &devices[bus - 0x16];
  return SUCCESS;
}

int nvmlDeviceGetIndex(void* asked, unsigned* index) {
  *index = (unsigned)numberOf(asked);
  return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(void* asked, struct PciInfo* pci) {
  fill(pci, 0x16 + (unsigned)numberOf(asked));
  return SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(void* asked, int* major, int* minor) {
  *major = 9;
  *minor = numberOf(asked) == 0 ? 0 : 1;
  return SUCCESS;
}

int nvmlDeviceGetMigMode(void* asked, unsigned* current, unsigned* pending) {
  *current = *pending = numberOf(asked) == 3;
  return numberOf(asked) == 0 ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetMaxPcieLinkGeneration(void* asked, unsigned* generation) {
  *generation = 5;
  return numberOf(asked) == 0 ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetMaxPcieLinkWidth(void* asked, unsigned* width) {
  (void)asked;
  *width = 16;
  return SUCCESS;
}

int nvmlDeviceGetNvLinkState(void* asked, unsigned link, unsigned* active) {
  static const unsigned links[GPUS] = {0, 0, 2, 2, 2, 4};
  const int gpu = numberOf(asked);
  if (gpu == 0) return NOT_SUPPORTED;
  if (gpu == 1) return LOST;
  if (link >= links[gpu]) return INVALID_ARGUMENT;
  *active = !(gpu == 5 && link == 2);
  return SUCCESS;
}

int nvmlDeviceGetNvLinkCapability(void* asked, unsigned link, unsigned capability, unsigned* has) {
  if (capability != 0) return INVALID_ARGUMENT;
  *has = !(numberOf(asked) == 2 && link == 1);
  return SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* asked, unsigned link, struct PciInfo* pci) {
  const int gpu = numberOf(asked);
  if (gpu == 5 && link == 3) {
    fill(pci, 0xc0);
  } else {
    fill(pci, gpu == 5 ? 0x1a : gpu == 4 ? 0x1b : gpu == 3 ? 0x18 : 0x19);
  }
  return SUCCESS;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void* asked, unsigned link, unsigned* type) {
  *type = numberOf(asked) == 5 && link == 3 ? 2 : 0;
  return SUCCESS;
}

int nvmlDeviceGetFieldValues(void* asked, int count, struct FieldValue* values) {
  if (count != 1) return INVALID_ARGUMENT;
  values->type = 1;
  values->result = numberOf(asked) == 0 ? SUCCESS : NOT_SUPPORTED;
  if (values->field == 170) values->value = 10;
  if (values->field == 171) values->value = values->scope != 7;
  if (values->field == 172) values->value = 44712;
  return SUCCESS;
}

int nvmlDeviceGetP2PStatus(void* a, void* b, unsigned what, unsigned* status) {
  *status = numberOf(a) == 1 && numberOf(b) == 2 && what == 1 ? 1 : 0;
  return numberOf(b) == 5 ? LOST : SUCCESS;
}
