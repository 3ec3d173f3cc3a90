// The layouts that profiler plugins were compiled with: sizes and offsets on 64-bit Linux. They never change.
#include <gtest/gtest.h>

#include <cstddef>

#include "nccl_profiler.h"

namespace {

#define AT(type, member, offset) static_assert(offsetof(type, member) == (offset));
// clang-format off

#define HEAD(event, bytes, wide) \
  static_assert(sizeof(event) == (bytes)); static_assert(sizeof(event::type) == (wide)); \
  AT(event, type, 0) AT(event, parentObj, 8) AT(event, rank, 16) \
  AT(event, proxyOp.pid, 24) AT(event, proxyOp.channelId, 28) AT(event, proxyOp.peer, 32) AT(event, proxyOp.nSteps, 36) \
  AT(event, proxyOp.chunkSize, 40) AT(event, proxyOp.isSend, 44) AT(event, proxyStep.step, 24)
#define COLL(event, from) \
  AT(event, coll.seqNumber, from) AT(event, coll.func, (from) + 8) AT(event, coll.sendBuff, (from) + 16) \
  AT(event, coll.recvBuff, (from) + 24) AT(event, coll.count, (from) + 32) AT(event, coll.root, (from) + 40)
#define NAMED_COLL(event) AT(event, coll.name, 24) AT(event, coll.commHash, 32) COLL(event, 40)
#define NAMED_P2P(event, typeAt) \
  AT(event, p2p.name, 24) AT(event, p2p.commHash, 32) AT(event, p2p.func, 40) AT(event, p2p.buff, 48) \
  AT(event, p2p.datatype, typeAt) AT(event, p2p.count, 64) AT(event, p2p.peer, 72)
#define UNNAMED(event) \
  COLL(event, 24) AT(event, coll.datatype, 72) AT(event, coll.nChannels, 80) AT(event, coll.nWarps, 81) \
  AT(event, coll.algo, 88) AT(event, coll.proto, 96) AT(event, p2p.func, 24) AT(event, p2p.buff, 32) \
  AT(event, p2p.datatype, 40) AT(event, p2p.count, 48) AT(event, p2p.peer, 56) AT(event, p2p.nChannels, 60) \
  AT(event, kernelCh.channelId, 24) AT(event, kernelCh.pTimer, 32) AT(event, netPlugin.id, 24) AT(event, netPlugin.data, 32)
#define CALLS(event) \
  UNNAMED(event) AT(event, coll.parentGroup, 104) AT(event, p2p.parentGroup, 64) AT(event, groupApi.graphCaptured, 24) \
  AT(event, groupApi.groupDepth, 28) AT(event, collApi.func, 24) AT(event, collApi.count, 32) \
  AT(event, collApi.datatype, 40) AT(event, collApi.root, 48) AT(event, collApi.stream, 56) \
  AT(event, collApi.graphCaptured, 64) AT(event, p2pApi.func, 24) AT(event, p2pApi.count, 32) \
  AT(event, p2pApi.datatype, 40) AT(event, p2pApi.stream, 48) AT(event, p2pApi.graphCaptured, 56) \
  AT(event, kernelLaunch.stream, 24)

HEAD(ncclProfilerEventDescr_v1_t, 120, 1) NAMED_COLL(ncclProfilerEventDescr_v1_t)
NAMED_P2P(ncclProfilerEventDescr_v1_t, 56)
AT(ncclProfilerEventDescr_v1_t, coll.datatype, 84) AT(ncclProfilerEventDescr_v1_t, coll.op, 88)
AT(ncclProfilerEventDescr_v1_t, coll.trafficBytes, 96) AT(ncclProfilerEventDescr_v1_t, coll.nMaxChannels, 104)
AT(ncclProfilerEventDescr_v1_t, coll.nWarps, 105) AT(ncclProfilerEventDescr_v1_t, coll.algo, 106)
AT(ncclProfilerEventDescr_v1_t, coll.proto, 107) AT(ncclProfilerEventDescr_v1_t, coll.isCollnet, 108)
AT(ncclProfilerEventDescr_v1_t, coll.isNvls, 112)

HEAD(ncclProfilerEventDescr_v2_t, 128, 1) NAMED_COLL(ncclProfilerEventDescr_v2_t)
NAMED_P2P(ncclProfilerEventDescr_v2_t, 56)
AT(ncclProfilerEventDescr_v2_t, coll.datatype, 88) AT(ncclProfilerEventDescr_v2_t, coll.trafficBytes, 96)
AT(ncclProfilerEventDescr_v2_t, coll.nMaxChannels, 104) AT(ncclProfilerEventDescr_v2_t, coll.nWarps, 105)
AT(ncclProfilerEventDescr_v2_t, coll.algo, 112) AT(ncclProfilerEventDescr_v2_t, coll.proto, 120)

HEAD(ncclProfilerEventDescr_v3_t, 120, 1) NAMED_COLL(ncclProfilerEventDescr_v3_t)
NAMED_P2P(ncclProfilerEventDescr_v3_t, 56)
AT(ncclProfilerEventDescr_v3_t, coll.datatype, 88) AT(ncclProfilerEventDescr_v3_t, coll.nMaxChannels, 96)
AT(ncclProfilerEventDescr_v3_t, coll.nWarps, 97) AT(ncclProfilerEventDescr_v3_t, coll.algo, 104)
AT(ncclProfilerEventDescr_v3_t, coll.proto, 112) AT(ncclProfilerEventDescr_v3_t, kernelCh.channelId, 24)
AT(ncclProfilerEventDescr_v3_t, netPlugin.id, 24) AT(ncclProfilerEventDescr_v3_t, netPlugin.data, 32)

HEAD(ncclProfilerEventDescr_v4_t, 104, 1) UNNAMED(ncclProfilerEventDescr_v4_t)
HEAD(ncclProfilerEventDescr_v5_t, 112, 8) CALLS(ncclProfilerEventDescr_v5_t)
HEAD(ncclProfilerEventDescr_v6_t, 112, 8) CALLS(ncclProfilerEventDescr_v6_t)
AT(ncclProfilerEventDescr_v6_t, ceColl.seqNumber, 24) AT(ncclProfilerEventDescr_v6_t, ceColl.func, 32)
AT(ncclProfilerEventDescr_v6_t, ceColl.sendBuff, 40) AT(ncclProfilerEventDescr_v6_t, ceColl.recvBuff, 48)
AT(ncclProfilerEventDescr_v6_t, ceColl.count, 56) AT(ncclProfilerEventDescr_v6_t, ceColl.root, 64)
AT(ncclProfilerEventDescr_v6_t, ceColl.datatype, 72) AT(ncclProfilerEventDescr_v6_t, ceColl.syncStrategy, 80)
AT(ncclProfilerEventDescr_v6_t, ceColl.intraBatchSync, 88) AT(ncclProfilerEventDescr_v6_t, ceColl.batchSize, 92)
AT(ncclProfilerEventDescr_v6_t, ceColl.numBatches, 96) AT(ncclProfilerEventDescr_v6_t, ceColl.ceSeqNum, 100)
AT(ncclProfilerEventDescr_v6_t, ceColl.stream, 104) AT(ncclProfilerEventDescr_v6_t, ceCollSync.isComplete, 24)
AT(ncclProfilerEventDescr_v6_t, ceCollSync.nRanks, 28) AT(ncclProfilerEventDescr_v6_t, ceCollBatch.numOps, 24)
AT(ncclProfilerEventDescr_v6_t, ceCollBatch.totalBytes, 32) AT(ncclProfilerEventDescr_v6_t, ceCollBatch.useIntraSync, 40)

static_assert(sizeof(ncclProfilerEventStateArgs_v3_t) == 16 && sizeof(ncclProfilerEventStateArgs_v6_t) == 8);
static_assert(sizeof(ncclProfilerNetIbDescr_v1_t) == 40 && sizeof(ncclProfilerNetSockDescr_v1_t) == 24);
#define TABLE(type) \
  static_assert(sizeof(type) == 48); AT(type, name, 0) AT(type, init, 8) AT(type, startEvent, 16) \
  AT(type, stopEvent, 24) AT(type, recordEventState, 32) AT(type, finalize, 40)
TABLE(ncclProfiler_v1_t) TABLE(ncclProfiler_v2_t) TABLE(ncclProfiler_v3_t)
TABLE(ncclProfiler_v4_t) TABLE(ncclProfiler_v5_t) TABLE(ncclProfiler_v6_t)
    // clang-format on

    TEST(ProfilerLayout, HasValuesThatPluginsWereCompiledWith) {
  EXPECT_EQ(ncclProfileGroup, 1);
  EXPECT_EQ(ncclProfileKernelCh, 64);
  EXPECT_EQ(ncclProfileKernelLaunch, 2048);
  EXPECT_EQ(ncclProfileCeBatch, 16384);
  EXPECT_EQ(ncclProfilerProxyStepSendGPUWait, 8);
  EXPECT_EQ(ncclProfilerProxyCtrlAppendEnd, 18);
  EXPECT_EQ(ncclProfilerKernelChStop, 22);
  EXPECT_EQ(ncclProfilerCeBatchComplete, 30);
}

}  // namespace
