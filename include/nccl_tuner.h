/* What a tuner plugin and the library say to each other: versions 2 to 6. C99 and C++.
 *
 * A tuner plugin is a shared library that exports one object named ncclTunerPlugin_v6 (or an older version's name); the
 * library takes the newest one that it finds. Each communicator of more than one rank begins it with init, asks it with
 * getCollInfo before each collective, and takes leave with finalize. New plugins need only what carries the suffix _v6,
 * the tables' structs of _v5, and the constants. Names, layouts and values are fixed by the programs that use them and
 * never change.
 *
 * Every function returns ncclSuccess or an error, after a message of level WARN through the logger; an error fails the
 * call of the application that led to it. The ranks do not compare notes: a tuner has to answer alike on all ranks of a
 * communicator, from what it is given, or their kernels wait for each other in vain. Calls for one communicator come
 * one after another, for different ones at the same time. */
#ifndef NCCL_TUNER_H_
#define NCCL_TUNER_H_

#include <stddef.h>
#include <stdint.h>

#include "nccl.h"
#include "nccl_net_types.h" /* the logger, ncclFunc_t, NCCL_PLUGIN_EXPORT */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Numbers ---------------------------------------------------------------------------------------------- */

#define NCCL_ALGO_UNDEF -1
#define NCCL_ALGO_TREE 0
#define NCCL_ALGO_RING 1
#define NCCL_ALGO_COLLNET_DIRECT 2
#define NCCL_ALGO_COLLNET_CHAIN 3
#define NCCL_ALGO_NVLS 4
#define NCCL_ALGO_NVLS_TREE 5
#define NCCL_ALGO_PAT 6
#define NCCL_NUM_ALGORITHMS_V5 7
#define NCCL_NUM_ALGORITHMS NCCL_NUM_ALGORITHMS_V5

#define NCCL_PROTO_UNDEF -1
#define NCCL_PROTO_LL 0
#define NCCL_PROTO_LL128 1
#define NCCL_PROTO_SIMPLE 2
#define NCCL_NUM_PROTOCOLS_V5 3
#define NCCL_NUM_PROTOCOLS NCCL_NUM_PROTOCOLS_V5

/** An entry of the table of times that cannot be, or must not be, taken. */
#define NCCL_ALGO_PROTO_IGNORE -1.0

/** Kinds of links that a hop goes over. */
#define NCCL_HW_NVLINK 0
#define NCCL_HW_PCI 1
#define NCCL_HW_NET 2
#define NCCL_NUM_HW_LINKS_V5 3

/** Generations of GPUs: compute capability below 8, 8, 9, from 10. */
#define NCCL_VOLTA_COMPCAP_IDX 0
#define NCCL_AMPERE_COMPCAP_IDX 1
#define NCCL_HOPPER_COMPCAP_IDX 2
#define NCCL_BLACKWELL_COMPCAP_IDX 3
#define NCCL_NUM_COMPCAPS_V5 4

/** Numbers of nodes: one, two, more. */
#define NCCL_TUNING_SCALE_1NODE 0
#define NCCL_TUNING_SCALE_2NODES 1
#define NCCL_TUNING_SCALE_4NODES 2
#define NCCL_NUM_TUNING_SCALES_V5 3

/* ---- What init is given ----------------------------------------------------------------------------------- */

/** Sets of ranks that NVLink joins; elsewhere the ranks of a node. */
typedef struct {
  int nNvlDomains;
  int minRanksPerNvlDomain;
  int maxRanksPerNvlDomain;
} ncclNvlDomainInfo_v5_t;
typedef ncclNvlDomainInfo_v5_t ncclNvlDomainInfo_v6_t;

/** What the library's estimates rest on; init may change it, for this communicator. Microseconds, and GB/s: of the LL
 * protocol at most, the others of one channel at most. */
typedef struct {
  double baseLatencies[NCCL_NUM_ALGORITHMS_V5][NCCL_NUM_PROTOCOLS_V5];
  double hwLatencies[NCCL_NUM_HW_LINKS_V5][NCCL_NUM_ALGORITHMS_V5][NCCL_NUM_PROTOCOLS_V5]; /**< of one hop */
  double llMaxBws[NCCL_NUM_COMPCAPS_V5][NCCL_NUM_TUNING_SCALES_V5];
  double perChMaxRingLL128Bws[NCCL_NUM_COMPCAPS_V5][NCCL_NUM_TUNING_SCALES_V5];
  double perChMaxTreeLL128Bws[NCCL_NUM_COMPCAPS_V5][NCCL_NUM_TUNING_SCALES_V5];
  double perChMaxTreeBws[NCCL_NUM_COMPCAPS_V5][NCCL_NUM_TUNING_SCALES_V5];
  double perChMaxNVLSTreeBws[NCCL_NUM_COMPCAPS_V5][NCCL_NUM_TUNING_SCALES_V5];
} ncclTunerConstants_v5_t;
typedef ncclTunerConstants_v5_t ncclTunerConstants_v6_t;

/* ---- Signatures, each named after the version that introduced it ------------------------------------------ */

typedef ncclResult_t ncclTunerInit_v2_fn(size_t nRanks, size_t nNodes, ncclDebugLogger_t log, void** context);
/** `commId` is equal on all ranks. The two structs are there during the call only. */
typedef ncclResult_t ncclTunerInit_v5_fn(void** context, uint64_t commId, size_t nRanks, size_t nNodes,
                                         ncclDebugLogger_t log, ncclNvlDomainInfo_v5_t* nvlDomainInfo,
                                         ncclTunerConstants_v5_t* constants);

/** What one collective is to run with: `*algorithm` and `*protocol` come as -1, *nChannels as 0, and stay so where the
 * plugin has no wish. */
typedef ncclResult_t ncclTunerGetCollInfo_v2_fn(void* context, ncclFunc_t collType, size_t nBytes, int collNetSupport,
                                                int nvlsSupport, int numPipeOps, int* algorithm, int* protocol,
                                                int* nChannels);
/** The same by times. `collCostTable` points to numAlgo * numProto floats in one piece, a row for each algorithm: cast
 * it to float(*)[numProto]. An entry is the microseconds that the library expects, or NCCL_ALGO_PROTO_IGNORE, which has
 * to stay. Lower an entry to favour it (0.0 forces it), set it to NCCL_ALGO_PROTO_IGNORE to forbid it: the smallest
 * wins. `nBytes`: of the larger buffer. `numPipeOps`: collectives that a channel is expected to work off one after
 * another. *nChannels comes as 0; what is there afterwards replaces the library's number of channels. */
typedef ncclResult_t ncclTunerGetCollInfo_v3_fn(void* context, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                                                float** collCostTable, int numAlgo, int numProto, int* nChannels);
/** `regBuff`: the buffers are registered, as far as the library knows. */
typedef ncclResult_t ncclTunerGetCollInfo_v4_fn(void* context, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                                                float** collCostTable, int numAlgo, int numProto, int regBuff,
                                                int* nChannels);
/** *chunkSize comes as the bytes that the library would take, and is made to fit its buffers afterwards. */
typedef ncclResult_t ncclTunerGetChunkSize_v6_fn(void* context, ncclFunc_t collType, size_t nBytes, int algo, int proto,
                                                 int nChannels, size_t* chunkSize);
typedef ncclResult_t ncclTunerFinalize_v2_fn(void* context);

/* ---- Tables ----------------------------------------------------------------------------------------------- */

typedef struct {
  const char* name; /**< of the tuner, in messages */
  ncclTunerInit_v5_fn* init;
  ncclTunerGetCollInfo_v4_fn* getCollInfo;
  ncclTunerFinalize_v2_fn* finalize;
  ncclTunerGetChunkSize_v6_fn* getChunkSize; /**< may be NULL */
} ncclTuner_v6_t;

typedef struct {
  const char* name;
  ncclTunerInit_v5_fn* init;
  ncclTunerGetCollInfo_v4_fn* getCollInfo;
  ncclTunerFinalize_v2_fn* finalize;
} ncclTuner_v5_t;

typedef struct {
  const char* name;
  ncclTunerInit_v2_fn* init;
  ncclTunerGetCollInfo_v4_fn* getCollInfo;
  ncclTunerFinalize_v2_fn* destroy;
} ncclTuner_v4_t;

typedef struct {
  const char* name;
  ncclTunerInit_v2_fn* init;
  ncclTunerGetCollInfo_v3_fn* getCollInfo;
  ncclTunerFinalize_v2_fn* destroy;
} ncclTuner_v3_t;

typedef struct {
  const char* name;
  ncclTunerInit_v2_fn* init;
  ncclTunerGetCollInfo_v2_fn* getCollInfo;
  ncclTunerFinalize_v2_fn* destroy;
} ncclTuner_v2_t;

#ifdef __cplusplus
}
#endif

#endif /* NCCL_TUNER_H_ */
