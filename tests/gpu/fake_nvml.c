/* An NVML that knows one device: the one at 0000:1b:00.0 has the number 5. */
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

static int started;
static char device;

EXPORTED int nvmlInit_v2(void);
EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char* busId, void** found);
EXPORTED int nvmlDeviceGetIndex(void* asked, unsigned* index);

int nvmlInit_v2(void) {
  started = 1;
  return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* busId, void** found) {
  if (!started) return 1;
  if (strcmp(busId, "0000:1b:00.0") != 0) return 6;
  *found = &device;
  return 0;
}

int nvmlDeviceGetIndex(void* asked, unsigned* index) {
  if (asked != &device) return 2;
  *index = 5;
  return 0;
}
