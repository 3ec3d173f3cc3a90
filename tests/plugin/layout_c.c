/* Plugins are also written in C99: the header compiles there, and a table can be filled. */
#include "nccl_net.h"

static ncclResult_t devices(int* ndev) {
  *ndev = 0;
  return ncclSuccess;
}

extern ncclNet_v12_t testPluginInC;
ncclNet_v12_t testPluginInC = {.name = "c", .devices = devices};
extern ncclCollNet_v12_t testCollNetInC;
ncclCollNet_v12_t testCollNetInC = {.name = "c", .devices = devices};
