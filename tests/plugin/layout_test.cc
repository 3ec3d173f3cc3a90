// The layouts that plugins were compiled with: sizes and offsets on 64-bit Linux. They never change.
#include <gtest/gtest.h>

#include <cstddef>

#include "nccl_net.h"

namespace {

#define AT(type, member, offset) static_assert(offsetof(type, member) == (offset));
/// Tables of pointers: by position.
#define NTH(type, member, position) AT(type, member, 8 * (position))

// clang-format off
static_assert(sizeof(ncclNetProperties_v6_t) == 48);
AT(ncclNetProperties_v6_t, name, 0) AT(ncclNetProperties_v6_t, pciPath, 8) AT(ncclNetProperties_v6_t, guid, 16)
AT(ncclNetProperties_v6_t, ptrSupport, 24) AT(ncclNetProperties_v6_t, speed, 28) AT(ncclNetProperties_v6_t, port, 32)
AT(ncclNetProperties_v6_t, latency, 36) AT(ncclNetProperties_v6_t, maxComms, 40)
AT(ncclNetProperties_v6_t, maxRecvs, 44)
static_assert(sizeof(ncclNetProperties_v7_t) == 56);
AT(ncclNetProperties_v7_t, name, 0) AT(ncclNetProperties_v7_t, pciPath, 8) AT(ncclNetProperties_v7_t, guid, 16)
AT(ncclNetProperties_v7_t, ptrSupport, 24) AT(ncclNetProperties_v7_t, speed, 28) AT(ncclNetProperties_v7_t, port, 32)
AT(ncclNetProperties_v7_t, latency, 36) AT(ncclNetProperties_v7_t, maxComms, 40)
AT(ncclNetProperties_v7_t, maxRecvs, 44) AT(ncclNetProperties_v7_t, netDeviceType, 48)
AT(ncclNetProperties_v7_t, netDeviceVersion, 52)
static_assert(sizeof(ncclNetProperties_v8_t) == 64);
AT(ncclNetProperties_v8_t, name, 0) AT(ncclNetProperties_v8_t, pciPath, 8) AT(ncclNetProperties_v8_t, guid, 16)
AT(ncclNetProperties_v8_t, ptrSupport, 24) AT(ncclNetProperties_v8_t, regIsGlobal, 28)
AT(ncclNetProperties_v8_t, speed, 32) AT(ncclNetProperties_v8_t, port, 36) AT(ncclNetProperties_v8_t, latency, 40)
AT(ncclNetProperties_v8_t, maxComms, 44) AT(ncclNetProperties_v8_t, maxRecvs, 48)
AT(ncclNetProperties_v8_t, netDeviceType, 52) AT(ncclNetProperties_v8_t, netDeviceVersion, 56)
static_assert(sizeof(ncclNetProperties_v9_t) == 104);
AT(ncclNetProperties_v9_t, name, 0) AT(ncclNetProperties_v9_t, pciPath, 8) AT(ncclNetProperties_v9_t, guid, 16)
AT(ncclNetProperties_v9_t, ptrSupport, 24) AT(ncclNetProperties_v9_t, regIsGlobal, 28)
AT(ncclNetProperties_v9_t, forceFlush, 32) AT(ncclNetProperties_v9_t, speed, 36) AT(ncclNetProperties_v9_t, port, 40)
AT(ncclNetProperties_v9_t, latency, 44) AT(ncclNetProperties_v9_t, maxComms, 48)
AT(ncclNetProperties_v9_t, maxRecvs, 52) AT(ncclNetProperties_v9_t, netDeviceType, 56)
AT(ncclNetProperties_v9_t, netDeviceVersion, 60) AT(ncclNetProperties_v9_t, vProps, 64)
AT(ncclNetProperties_v9_t, maxP2pBytes, 88) AT(ncclNetProperties_v9_t, maxCollBytes, 96)
static_assert(sizeof(ncclNetProperties_v10_t) == 104);
AT(ncclNetProperties_v10_t, name, 0) AT(ncclNetProperties_v10_t, pciPath, 8) AT(ncclNetProperties_v10_t, guid, 16)
AT(ncclNetProperties_v10_t, ptrSupport, 24) AT(ncclNetProperties_v10_t, regIsGlobal, 28)
AT(ncclNetProperties_v10_t, forceFlush, 32) AT(ncclNetProperties_v10_t, speed, 36)
AT(ncclNetProperties_v10_t, port, 40) AT(ncclNetProperties_v10_t, latency, 44)
AT(ncclNetProperties_v10_t, maxComms, 48) AT(ncclNetProperties_v10_t, maxRecvs, 52)
AT(ncclNetProperties_v10_t, netDeviceType, 56) AT(ncclNetProperties_v10_t, netDeviceVersion, 60)
AT(ncclNetProperties_v10_t, vProps, 64) AT(ncclNetProperties_v10_t, maxP2pBytes, 88)
AT(ncclNetProperties_v10_t, maxCollBytes, 96)
static_assert(sizeof(ncclNetProperties_v11_t) == 112);
AT(ncclNetProperties_v11_t, name, 0) AT(ncclNetProperties_v11_t, pciPath, 8) AT(ncclNetProperties_v11_t, guid, 16)
AT(ncclNetProperties_v11_t, ptrSupport, 24) AT(ncclNetProperties_v11_t, regIsGlobal, 28)
AT(ncclNetProperties_v11_t, forceFlush, 32) AT(ncclNetProperties_v11_t, speed, 36)
AT(ncclNetProperties_v11_t, port, 40) AT(ncclNetProperties_v11_t, latency, 44)
AT(ncclNetProperties_v11_t, maxComms, 48) AT(ncclNetProperties_v11_t, maxRecvs, 52)
AT(ncclNetProperties_v11_t, netDeviceType, 56) AT(ncclNetProperties_v11_t, netDeviceVersion, 60)
AT(ncclNetProperties_v11_t, vProps, 64) AT(ncclNetProperties_v11_t, maxP2pBytes, 88)
AT(ncclNetProperties_v11_t, maxCollBytes, 96) AT(ncclNetProperties_v11_t, maxMultiRequestSize, 104)
static_assert(sizeof(ncclNetProperties_v12_t) == 128);
AT(ncclNetProperties_v12_t, name, 0) AT(ncclNetProperties_v12_t, pciPath, 8) AT(ncclNetProperties_v12_t, guid, 16)
AT(ncclNetProperties_v12_t, ptrSupport, 24) AT(ncclNetProperties_v12_t, regIsGlobal, 28)
AT(ncclNetProperties_v12_t, forceFlush, 32) AT(ncclNetProperties_v12_t, speed, 36)
AT(ncclNetProperties_v12_t, port, 40) AT(ncclNetProperties_v12_t, latency, 44)
AT(ncclNetProperties_v12_t, maxComms, 48) AT(ncclNetProperties_v12_t, maxRecvs, 52)
AT(ncclNetProperties_v12_t, netDeviceType, 56) AT(ncclNetProperties_v12_t, netDeviceVersion, 60)
AT(ncclNetProperties_v12_t, vProps, 64) AT(ncclNetProperties_v12_t, maxP2pBytes, 104)
AT(ncclNetProperties_v12_t, maxCollBytes, 112) AT(ncclNetProperties_v12_t, maxMultiRequestSize, 120)
AT(ncclNetProperties_v12_t, railId, 124) AT(ncclNetProperties_v12_t, planeId, 126)
static_assert(sizeof(ncclNet_v6_t) == 136);
NTH(ncclNet_v6_t, name, 0) NTH(ncclNet_v6_t, init, 1) NTH(ncclNet_v6_t, devices, 2)
NTH(ncclNet_v6_t, getProperties, 3) NTH(ncclNet_v6_t, listen, 4) NTH(ncclNet_v6_t, connect, 5)
NTH(ncclNet_v6_t, accept, 6) NTH(ncclNet_v6_t, regMr, 7) NTH(ncclNet_v6_t, regMrDmaBuf, 8)
NTH(ncclNet_v6_t, deregMr, 9) NTH(ncclNet_v6_t, isend, 10) NTH(ncclNet_v6_t, irecv, 11) NTH(ncclNet_v6_t, iflush, 12)
NTH(ncclNet_v6_t, test, 13) NTH(ncclNet_v6_t, closeSend, 14) NTH(ncclNet_v6_t, closeRecv, 15)
NTH(ncclNet_v6_t, closeListen, 16)
static_assert(sizeof(ncclNet_v7_t) == 152);
NTH(ncclNet_v7_t, name, 0) NTH(ncclNet_v7_t, init, 1) NTH(ncclNet_v7_t, devices, 2)
NTH(ncclNet_v7_t, getProperties, 3) NTH(ncclNet_v7_t, listen, 4) NTH(ncclNet_v7_t, connect, 5)
NTH(ncclNet_v7_t, accept, 6) NTH(ncclNet_v7_t, regMr, 7) NTH(ncclNet_v7_t, regMrDmaBuf, 8)
NTH(ncclNet_v7_t, deregMr, 9) NTH(ncclNet_v7_t, isend, 10) NTH(ncclNet_v7_t, irecv, 11) NTH(ncclNet_v7_t, iflush, 12)
NTH(ncclNet_v7_t, test, 13) NTH(ncclNet_v7_t, closeSend, 14) NTH(ncclNet_v7_t, closeRecv, 15)
NTH(ncclNet_v7_t, closeListen, 16) NTH(ncclNet_v7_t, getDeviceMr, 17) NTH(ncclNet_v7_t, irecvConsumed, 18)
static_assert(sizeof(ncclNet_v8_t) == 152);
NTH(ncclNet_v8_t, name, 0) NTH(ncclNet_v8_t, init, 1) NTH(ncclNet_v8_t, devices, 2)
NTH(ncclNet_v8_t, getProperties, 3) NTH(ncclNet_v8_t, listen, 4) NTH(ncclNet_v8_t, connect, 5)
NTH(ncclNet_v8_t, accept, 6) NTH(ncclNet_v8_t, regMr, 7) NTH(ncclNet_v8_t, regMrDmaBuf, 8)
NTH(ncclNet_v8_t, deregMr, 9) NTH(ncclNet_v8_t, isend, 10) NTH(ncclNet_v8_t, irecv, 11) NTH(ncclNet_v8_t, iflush, 12)
NTH(ncclNet_v8_t, test, 13) NTH(ncclNet_v8_t, closeSend, 14) NTH(ncclNet_v8_t, closeRecv, 15)
NTH(ncclNet_v8_t, closeListen, 16) NTH(ncclNet_v8_t, getDeviceMr, 17) NTH(ncclNet_v8_t, irecvConsumed, 18)
static_assert(sizeof(ncclNet_v9_t) == 160);
NTH(ncclNet_v9_t, name, 0) NTH(ncclNet_v9_t, init, 1) NTH(ncclNet_v9_t, devices, 2)
NTH(ncclNet_v9_t, getProperties, 3) NTH(ncclNet_v9_t, listen, 4) NTH(ncclNet_v9_t, connect, 5)
NTH(ncclNet_v9_t, accept, 6) NTH(ncclNet_v9_t, regMr, 7) NTH(ncclNet_v9_t, regMrDmaBuf, 8)
NTH(ncclNet_v9_t, deregMr, 9) NTH(ncclNet_v9_t, isend, 10) NTH(ncclNet_v9_t, irecv, 11) NTH(ncclNet_v9_t, iflush, 12)
NTH(ncclNet_v9_t, test, 13) NTH(ncclNet_v9_t, closeSend, 14) NTH(ncclNet_v9_t, closeRecv, 15)
NTH(ncclNet_v9_t, closeListen, 16) NTH(ncclNet_v9_t, getDeviceMr, 17) NTH(ncclNet_v9_t, irecvConsumed, 18)
NTH(ncclNet_v9_t, makeVDevice, 19)
static_assert(sizeof(ncclNet_v10_t) == 160);
NTH(ncclNet_v10_t, name, 0) NTH(ncclNet_v10_t, init, 1) NTH(ncclNet_v10_t, devices, 2)
NTH(ncclNet_v10_t, getProperties, 3) NTH(ncclNet_v10_t, listen, 4) NTH(ncclNet_v10_t, connect, 5)
NTH(ncclNet_v10_t, accept, 6) NTH(ncclNet_v10_t, regMr, 7) NTH(ncclNet_v10_t, regMrDmaBuf, 8)
NTH(ncclNet_v10_t, deregMr, 9) NTH(ncclNet_v10_t, isend, 10) NTH(ncclNet_v10_t, irecv, 11)
NTH(ncclNet_v10_t, iflush, 12) NTH(ncclNet_v10_t, test, 13) NTH(ncclNet_v10_t, closeSend, 14)
NTH(ncclNet_v10_t, closeRecv, 15) NTH(ncclNet_v10_t, closeListen, 16) NTH(ncclNet_v10_t, getDeviceMr, 17)
NTH(ncclNet_v10_t, irecvConsumed, 18) NTH(ncclNet_v10_t, makeVDevice, 19)
static_assert(sizeof(ncclNet_v11_t) == 176);
NTH(ncclNet_v11_t, name, 0) NTH(ncclNet_v11_t, init, 1) NTH(ncclNet_v11_t, devices, 2)
NTH(ncclNet_v11_t, getProperties, 3) NTH(ncclNet_v11_t, listen, 4) NTH(ncclNet_v11_t, connect, 5)
NTH(ncclNet_v11_t, accept, 6) NTH(ncclNet_v11_t, regMr, 7) NTH(ncclNet_v11_t, regMrDmaBuf, 8)
NTH(ncclNet_v11_t, deregMr, 9) NTH(ncclNet_v11_t, isend, 10) NTH(ncclNet_v11_t, irecv, 11)
NTH(ncclNet_v11_t, iflush, 12) NTH(ncclNet_v11_t, test, 13) NTH(ncclNet_v11_t, closeSend, 14)
NTH(ncclNet_v11_t, closeRecv, 15) NTH(ncclNet_v11_t, closeListen, 16) NTH(ncclNet_v11_t, getDeviceMr, 17)
NTH(ncclNet_v11_t, irecvConsumed, 18) NTH(ncclNet_v11_t, makeVDevice, 19) NTH(ncclNet_v11_t, finalize, 20)
NTH(ncclNet_v11_t, setNetAttr, 21)
static_assert(sizeof(ncclNet_v12_t) == 176);
NTH(ncclNet_v12_t, name, 0) NTH(ncclNet_v12_t, init, 1) NTH(ncclNet_v12_t, devices, 2)
NTH(ncclNet_v12_t, getProperties, 3) NTH(ncclNet_v12_t, listen, 4) NTH(ncclNet_v12_t, connect, 5)
NTH(ncclNet_v12_t, accept, 6) NTH(ncclNet_v12_t, regMr, 7) NTH(ncclNet_v12_t, regMrDmaBuf, 8)
NTH(ncclNet_v12_t, deregMr, 9) NTH(ncclNet_v12_t, isend, 10) NTH(ncclNet_v12_t, irecv, 11)
NTH(ncclNet_v12_t, iflush, 12) NTH(ncclNet_v12_t, test, 13) NTH(ncclNet_v12_t, closeSend, 14)
NTH(ncclNet_v12_t, closeRecv, 15) NTH(ncclNet_v12_t, closeListen, 16) NTH(ncclNet_v12_t, getDeviceMr, 17)
NTH(ncclNet_v12_t, irecvConsumed, 18) NTH(ncclNet_v12_t, makeVDevice, 19) NTH(ncclNet_v12_t, finalize, 20)
NTH(ncclNet_v12_t, setNetAttr, 21)
static_assert(sizeof(ncclCollNet_v6_t) == 120);
NTH(ncclCollNet_v6_t, name, 0) NTH(ncclCollNet_v6_t, init, 1) NTH(ncclCollNet_v6_t, devices, 2)
NTH(ncclCollNet_v6_t, getProperties, 3) NTH(ncclCollNet_v6_t, listen, 4) NTH(ncclCollNet_v6_t, connect, 5)
NTH(ncclCollNet_v6_t, reduceSupport, 6) NTH(ncclCollNet_v6_t, regMr, 7) NTH(ncclCollNet_v6_t, regMrDmaBuf, 8)
NTH(ncclCollNet_v6_t, deregMr, 9) NTH(ncclCollNet_v6_t, iallreduce, 10) NTH(ncclCollNet_v6_t, iflush, 11)
NTH(ncclCollNet_v6_t, test, 12) NTH(ncclCollNet_v6_t, closeColl, 13) NTH(ncclCollNet_v6_t, closeListen, 14)
static_assert(sizeof(ncclCollNet_v7_t) == 120);
NTH(ncclCollNet_v7_t, name, 0) NTH(ncclCollNet_v7_t, init, 1) NTH(ncclCollNet_v7_t, devices, 2)
NTH(ncclCollNet_v7_t, getProperties, 3) NTH(ncclCollNet_v7_t, listen, 4) NTH(ncclCollNet_v7_t, connect, 5)
NTH(ncclCollNet_v7_t, reduceSupport, 6) NTH(ncclCollNet_v7_t, regMr, 7) NTH(ncclCollNet_v7_t, regMrDmaBuf, 8)
NTH(ncclCollNet_v7_t, deregMr, 9) NTH(ncclCollNet_v7_t, iallreduce, 10) NTH(ncclCollNet_v7_t, iflush, 11)
NTH(ncclCollNet_v7_t, test, 12) NTH(ncclCollNet_v7_t, closeColl, 13) NTH(ncclCollNet_v7_t, closeListen, 14)
static_assert(sizeof(ncclCollNet_v8_t) == 136);
NTH(ncclCollNet_v8_t, name, 0) NTH(ncclCollNet_v8_t, init, 1) NTH(ncclCollNet_v8_t, devices, 2)
NTH(ncclCollNet_v8_t, getProperties, 3) NTH(ncclCollNet_v8_t, listen, 4) NTH(ncclCollNet_v8_t, connect, 5)
NTH(ncclCollNet_v8_t, reduceSupport, 6) NTH(ncclCollNet_v8_t, regMr, 7) NTH(ncclCollNet_v8_t, regMrDmaBuf, 8)
NTH(ncclCollNet_v8_t, deregMr, 9) NTH(ncclCollNet_v8_t, iallreduce, 10) NTH(ncclCollNet_v8_t, iallgather, 11)
NTH(ncclCollNet_v8_t, ireducescatter, 12) NTH(ncclCollNet_v8_t, iflush, 13) NTH(ncclCollNet_v8_t, test, 14)
NTH(ncclCollNet_v8_t, closeColl, 15) NTH(ncclCollNet_v8_t, closeListen, 16)
static_assert(sizeof(ncclCollNet_v9_t) == 144);
NTH(ncclCollNet_v9_t, name, 0) NTH(ncclCollNet_v9_t, init, 1) NTH(ncclCollNet_v9_t, devices, 2)
NTH(ncclCollNet_v9_t, getProperties, 3) NTH(ncclCollNet_v9_t, listen, 4) NTH(ncclCollNet_v9_t, connect, 5)
NTH(ncclCollNet_v9_t, reduceSupport, 6) NTH(ncclCollNet_v9_t, regMr, 7) NTH(ncclCollNet_v9_t, regMrDmaBuf, 8)
NTH(ncclCollNet_v9_t, deregMr, 9) NTH(ncclCollNet_v9_t, iallreduce, 10) NTH(ncclCollNet_v9_t, iallgather, 11)
NTH(ncclCollNet_v9_t, ireducescatter, 12) NTH(ncclCollNet_v9_t, iflush, 13) NTH(ncclCollNet_v9_t, test, 14)
NTH(ncclCollNet_v9_t, closeColl, 15) NTH(ncclCollNet_v9_t, closeListen, 16) NTH(ncclCollNet_v9_t, makeVDevice, 17)
static_assert(sizeof(ncclCollNet_v10_t) == 144);
NTH(ncclCollNet_v10_t, name, 0) NTH(ncclCollNet_v10_t, init, 1) NTH(ncclCollNet_v10_t, devices, 2)
NTH(ncclCollNet_v10_t, getProperties, 3) NTH(ncclCollNet_v10_t, listen, 4) NTH(ncclCollNet_v10_t, connect, 5)
NTH(ncclCollNet_v10_t, reduceSupport, 6) NTH(ncclCollNet_v10_t, regMr, 7) NTH(ncclCollNet_v10_t, regMrDmaBuf, 8)
NTH(ncclCollNet_v10_t, deregMr, 9) NTH(ncclCollNet_v10_t, iallreduce, 10) NTH(ncclCollNet_v10_t, iallgather, 11)
NTH(ncclCollNet_v10_t, ireducescatter, 12) NTH(ncclCollNet_v10_t, iflush, 13) NTH(ncclCollNet_v10_t, test, 14)
NTH(ncclCollNet_v10_t, closeColl, 15) NTH(ncclCollNet_v10_t, closeListen, 16) NTH(ncclCollNet_v10_t, makeVDevice, 17)
static_assert(sizeof(ncclCollNet_v11_t) == 152);
NTH(ncclCollNet_v11_t, name, 0) NTH(ncclCollNet_v11_t, init, 1) NTH(ncclCollNet_v11_t, devices, 2)
NTH(ncclCollNet_v11_t, getProperties, 3) NTH(ncclCollNet_v11_t, listen, 4) NTH(ncclCollNet_v11_t, connect, 5)
NTH(ncclCollNet_v11_t, reduceSupport, 6) NTH(ncclCollNet_v11_t, regMr, 7) NTH(ncclCollNet_v11_t, regMrDmaBuf, 8)
NTH(ncclCollNet_v11_t, deregMr, 9) NTH(ncclCollNet_v11_t, iallreduce, 10) NTH(ncclCollNet_v11_t, iallgather, 11)
NTH(ncclCollNet_v11_t, ireducescatter, 12) NTH(ncclCollNet_v11_t, iflush, 13) NTH(ncclCollNet_v11_t, test, 14)
NTH(ncclCollNet_v11_t, closeColl, 15) NTH(ncclCollNet_v11_t, closeListen, 16) NTH(ncclCollNet_v11_t, makeVDevice, 17)
NTH(ncclCollNet_v11_t, finalize, 18)
static_assert(sizeof(ncclCollNet_v12_t) == 152);
NTH(ncclCollNet_v12_t, name, 0) NTH(ncclCollNet_v12_t, init, 1) NTH(ncclCollNet_v12_t, devices, 2)
NTH(ncclCollNet_v12_t, getProperties, 3) NTH(ncclCollNet_v12_t, listen, 4) NTH(ncclCollNet_v12_t, connect, 5)
NTH(ncclCollNet_v12_t, reduceSupport, 6) NTH(ncclCollNet_v12_t, regMr, 7) NTH(ncclCollNet_v12_t, regMrDmaBuf, 8)
NTH(ncclCollNet_v12_t, deregMr, 9) NTH(ncclCollNet_v12_t, iallreduce, 10) NTH(ncclCollNet_v12_t, iallgather, 11)
NTH(ncclCollNet_v12_t, ireducescatter, 12) NTH(ncclCollNet_v12_t, iflush, 13) NTH(ncclCollNet_v12_t, test, 14)
NTH(ncclCollNet_v12_t, closeColl, 15) NTH(ncclCollNet_v12_t, closeListen, 16) NTH(ncclCollNet_v12_t, makeVDevice, 17)
NTH(ncclCollNet_v12_t, finalize, 18)
    // clang-format on

    AT(ncclNetDeviceHandle_v7_t, netDeviceType, 0) AT(ncclNetDeviceHandle_v7_t, netDeviceVersion, 4)
        AT(ncclNetDeviceHandle_v7_t, handle, 8) AT(ncclNetDeviceHandle_v7_t, size, 16)
            AT(ncclNetDeviceHandle_v7_t, needsProxyProgress, 24) AT(ncclNetVDeviceProps_v9_t, devs, 4)
                AT(ncclNetVDeviceProps_v12_t, devs, 4) AT(ncclNetAttr_v12_t, recvCommAttr, 16)
                    AT(ncclNetAttr_v12_t, op, 32) AT(ncclNetAttr_v12_t, algo, 36) AT(ncclNetAttr_v12_t, proto, 40)
                        AT(ncclNetCommAttr_v12_t, minConcurrentPeers, 4) AT(ncclNetCommAttr_v12_t, maxFlowsPerPeer, 8)
                            AT(ncclNetCommAttr_v12_t, minFlowsPerPeer, 12) AT(ncclNetSGE_v8_t, address, 8)
                                AT(ncclNetSGE_v8_t, size, 16) AT(ncclNetSGE_v9_t, size, 16)

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
