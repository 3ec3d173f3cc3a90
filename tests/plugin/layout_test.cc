// The layouts that plugins were compiled with: sizes and offsets on 64-bit Linux. They never change.
#include <gtest/gtest.h>

#include <cstddef>

#include "nccl_net.h"

namespace {

#define AT(type, member, offset) static_assert(offsetof(type, member) == (offset));
/// Tables of pointers: by position.
#define NTH(type, member, position) AT(type, member, 8 * (position))

// clang-format off

/// What versions have in common is said once; a version adds what came with it.
#define PROPERTIES_FROM(type, speedAt) \
  AT(type, name, 0) AT(type, pciPath, 8) AT(type, guid, 16) AT(type, ptrSupport, 24) \
  AT(type, speed, speedAt) AT(type, port, (speedAt) + 4) AT(type, latency, (speedAt) + 8) \
  AT(type, maxComms, (speedAt) + 12) AT(type, maxRecvs, (speedAt) + 16)
#define PROPERTIES_WITH_DEVICE(type, speedAt) \
  PROPERTIES_FROM(type, speedAt) \
  AT(type, netDeviceType, (speedAt) + 20) AT(type, netDeviceVersion, (speedAt) + 24)
#define PROPERTIES_WITH_PARTS(type, bytesAt) \
  PROPERTIES_WITH_DEVICE(type, 36) AT(type, regIsGlobal, 28) AT(type, forceFlush, 32) AT(type, vProps, 64) \
  AT(type, maxP2pBytes, bytesAt) AT(type, maxCollBytes, (bytesAt) + 8)

#define NET_TABLE(type) \
  NTH(type, name, 0) NTH(type, init, 1) NTH(type, devices, 2) NTH(type, getProperties, 3) NTH(type, listen, 4) \
  NTH(type, connect, 5) NTH(type, accept, 6) NTH(type, regMr, 7) NTH(type, regMrDmaBuf, 8) NTH(type, deregMr, 9) \
  NTH(type, isend, 10) NTH(type, irecv, 11) NTH(type, iflush, 12) NTH(type, test, 13) NTH(type, closeSend, 14) \
  NTH(type, closeRecv, 15) NTH(type, closeListen, 16)
#define NET_TABLE_WITH_DEVICE(type) NET_TABLE(type) NTH(type, getDeviceMr, 17) NTH(type, irecvConsumed, 18)
#define NET_TABLE_WITH_PARTS(type) NET_TABLE_WITH_DEVICE(type) NTH(type, makeVDevice, 19)
#define NET_TABLE_WITH_END(type) NET_TABLE_WITH_PARTS(type) NTH(type, finalize, 20) NTH(type, setNetAttr, 21)

#define COLL_TABLE(type) \
  NTH(type, name, 0) NTH(type, init, 1) NTH(type, devices, 2) NTH(type, getProperties, 3) NTH(type, listen, 4) \
  NTH(type, connect, 5) NTH(type, reduceSupport, 6) NTH(type, regMr, 7) NTH(type, regMrDmaBuf, 8) \
  NTH(type, deregMr, 9) NTH(type, iallreduce, 10)
#define COLL_TABLE_BACK(type, first) \
  NTH(type, iflush, first) NTH(type, test, (first) + 1) NTH(type, closeColl, (first) + 2) \
  NTH(type, closeListen, (first) + 3)
#define COLL_TABLE_WITH_GATHER(type) \
  COLL_TABLE(type) NTH(type, iallgather, 11) NTH(type, ireducescatter, 12) COLL_TABLE_BACK(type, 13)
#define COLL_TABLE_WITH_PARTS(type) COLL_TABLE_WITH_GATHER(type) NTH(type, makeVDevice, 17)

static_assert(sizeof(ncclNetProperties_v6_t) == 48);
PROPERTIES_FROM(ncclNetProperties_v6_t, 28)
static_assert(sizeof(ncclNetProperties_v7_t) == 56);
PROPERTIES_WITH_DEVICE(ncclNetProperties_v7_t, 28)
static_assert(sizeof(ncclNetProperties_v8_t) == 64);
PROPERTIES_WITH_DEVICE(ncclNetProperties_v8_t, 32) AT(ncclNetProperties_v8_t, regIsGlobal, 28)
static_assert(sizeof(ncclNetProperties_v9_t) == 104);
PROPERTIES_WITH_PARTS(ncclNetProperties_v9_t, 88)
static_assert(sizeof(ncclNetProperties_v10_t) == 104);
PROPERTIES_WITH_PARTS(ncclNetProperties_v10_t, 88)
static_assert(sizeof(ncclNetProperties_v11_t) == 112);
PROPERTIES_WITH_PARTS(ncclNetProperties_v11_t, 88) AT(ncclNetProperties_v11_t, maxMultiRequestSize, 104)
static_assert(sizeof(ncclNetProperties_v12_t) == 128);
PROPERTIES_WITH_PARTS(ncclNetProperties_v12_t, 104) AT(ncclNetProperties_v12_t, maxMultiRequestSize, 120)
AT(ncclNetProperties_v12_t, railId, 124) AT(ncclNetProperties_v12_t, planeId, 126)

static_assert(sizeof(ncclNet_v6_t) == 136);
NET_TABLE(ncclNet_v6_t)
static_assert(sizeof(ncclNet_v7_t) == 152);
NET_TABLE_WITH_DEVICE(ncclNet_v7_t)
static_assert(sizeof(ncclNet_v8_t) == 152);
NET_TABLE_WITH_DEVICE(ncclNet_v8_t)
static_assert(sizeof(ncclNet_v9_t) == 160);
NET_TABLE_WITH_PARTS(ncclNet_v9_t)
static_assert(sizeof(ncclNet_v10_t) == 160);
NET_TABLE_WITH_PARTS(ncclNet_v10_t)
static_assert(sizeof(ncclNet_v11_t) == 176);
NET_TABLE_WITH_END(ncclNet_v11_t)
static_assert(sizeof(ncclNet_v12_t) == 176);
NET_TABLE_WITH_END(ncclNet_v12_t)

static_assert(sizeof(ncclCollNet_v6_t) == 120);
COLL_TABLE(ncclCollNet_v6_t) COLL_TABLE_BACK(ncclCollNet_v6_t, 11)
static_assert(sizeof(ncclCollNet_v7_t) == 120);
COLL_TABLE(ncclCollNet_v7_t) COLL_TABLE_BACK(ncclCollNet_v7_t, 11)
static_assert(sizeof(ncclCollNet_v8_t) == 136);
COLL_TABLE_WITH_GATHER(ncclCollNet_v8_t)
static_assert(sizeof(ncclCollNet_v9_t) == 144);
COLL_TABLE_WITH_PARTS(ncclCollNet_v9_t)
static_assert(sizeof(ncclCollNet_v10_t) == 144);
COLL_TABLE_WITH_PARTS(ncclCollNet_v10_t)
static_assert(sizeof(ncclCollNet_v11_t) == 152);
COLL_TABLE_WITH_PARTS(ncclCollNet_v11_t) NTH(ncclCollNet_v11_t, finalize, 18)
static_assert(sizeof(ncclCollNet_v12_t) == 152);
COLL_TABLE_WITH_PARTS(ncclCollNet_v12_t) NTH(ncclCollNet_v12_t, finalize, 18)

AT(ncclNetDeviceHandle_v7_t, netDeviceType, 0) AT(ncclNetDeviceHandle_v7_t, netDeviceVersion, 4)
AT(ncclNetDeviceHandle_v7_t, handle, 8) AT(ncclNetDeviceHandle_v7_t, size, 16)
AT(ncclNetDeviceHandle_v7_t, needsProxyProgress, 24) AT(ncclNetVDeviceProps_v9_t, devs, 4)
AT(ncclNetVDeviceProps_v12_t, devs, 4) AT(ncclNetAttr_v12_t, recvCommAttr, 16)
AT(ncclNetAttr_v12_t, op, 32) AT(ncclNetAttr_v12_t, algo, 36) AT(ncclNetAttr_v12_t, proto, 40)
AT(ncclNetCommAttr_v12_t, minConcurrentPeers, 4) AT(ncclNetCommAttr_v12_t, maxFlowsPerPeer, 8)
AT(ncclNetCommAttr_v12_t, minFlowsPerPeer, 12) AT(ncclNetSGE_v8_t, address, 8)
AT(ncclNetSGE_v8_t, size, 16) AT(ncclNetSGE_v9_t, size, 16)
    // clang-format on

    TEST(NetLayout, HasTheSizesOfSmallStructs) {
  EXPECT_EQ(sizeof(ncclNetDeviceHandle_v7_t), 32U);
  EXPECT_EQ(sizeof(ncclNetDeviceHandle_v12_t), 32U);
  EXPECT_EQ(sizeof(ncclNetVDeviceProps_v9_t), 20U);
  EXPECT_EQ(sizeof(ncclNetVDeviceProps_v11_t), 20U);
  EXPECT_EQ(sizeof(ncclNetVDeviceProps_v12_t), 36U);
  EXPECT_EQ(sizeof(ncclNetCommConfig_v10_t), 4U);
  EXPECT_EQ(sizeof(ncclNetCommConfig_v12_t), 4U);
  EXPECT_EQ(sizeof(ncclNetCommAttr_v11_t), 16U);
  EXPECT_EQ(sizeof(ncclNetAttr_v11_t), 44U);
  EXPECT_EQ(sizeof(ncclNetSGE_v8_t), 24U);
  EXPECT_EQ(sizeof(ncclNetSGE_v12_t), 24U);
  EXPECT_EQ(sizeof(ncclNetSGE_v8_t::size), 4U);
  EXPECT_EQ(sizeof(ncclNetSGE_v9_t::size), 8U);
}

TEST(NetLayout, HasTheValuesOfConstants) {
  EXPECT_EQ(NCCL_NET_HANDLE_MAXSIZE, 128);
  EXPECT_EQ(NCCL_NET_MAX_REQUESTS, 32);
  EXPECT_EQ(NCCL_PTR_HOST | NCCL_PTR_CUDA | NCCL_PTR_DMABUF, 7);
  EXPECT_EQ(MAX_NET_SIZE, 1L << 30);
  EXPECT_EQ(MAX_COLLNET_SIZE, 1L << 29);
  EXPECT_EQ(NCCL_MAX_NET_SIZE_BYTES, 1L << 40);
  EXPECT_EQ(NCCL_NET_DEVICE_GIN_GPI, 4);
  EXPECT_EQ(NCCL_NET_DEVICE_UNPACK_VERSION, 7);
  EXPECT_EQ(NCCL_LOG_TRACE, 5);
  EXPECT_EQ(NCCL_ALLOC_HOST, 1 << 17);
  EXPECT_EQ(NCCL_ALL, -1);
  EXPECT_EQ(ncclProfilerNetEventUpdateAndStop, 3);
  EXPECT_EQ(ncclNumFuncs, 15);
}

}  // namespace
