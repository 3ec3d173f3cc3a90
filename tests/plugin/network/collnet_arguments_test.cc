// Whether everything that the library says to a collNet reaches plugins of every version, and everything back.
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "plugin/network/open_collnet.h"
#include "plugin/plugin_fixture.h"

namespace tutti::test {
namespace {

class CollNetArguments : public NetArgumentsOf {};
INSTANTIATE_TEST_SUITE_P(Versions, CollNetArguments, testing::Values(6, 7, 8, 9, 10, 11, 12),
                         [](const auto& test) { return "V" + std::to_string(test.param); });

/// Memory of two registrations, of which operations take parts.
struct Buffers {
  std::array<float, 16> from{};
  std::array<float, 16> to{};
  char sendHandle = 0;
  char recvHandle = 0;
  Buffers() {
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i + 1);
  }
  plugin::CollNetBuffer send(std::size_t floats) { return {from.data() + 2, floats * sizeof(float), &sendHandle}; }
  plugin::CollNetBuffer recv(std::size_t floats) { return {to.data() + 3, floats * sizeof(float), &recvHandle}; }
};

TEST_P(CollNetArguments, EveryFieldOfThePropertiesArrivesSinceItsVersion) {
  const ScopedEnv faults("TEST_NET_FAULT", "records,every-field");
  const OpenCollNet plugin(GetParam());
  const plugin::NetProperties p = plugin.net->properties(2).value();
  EXPECT_EQ(record().properties.device, 2);
  EXPECT_TRUE(record().properties.isBlank);
  EXPECT_EQ(p.name, "test2");
  EXPECT_EQ(p.pciPath, "/sys/devices/pci0000:00/0000:00:03.0");
  EXPECT_EQ(p.guid, 0xfedcba9876543210U);
  EXPECT_EQ(p.ptrSupport, NCCL_PTR_HOST | NCCL_PTR_CUDA | NCCL_PTR_DMABUF);
  EXPECT_EQ(p.speedMbps, 25000);
  EXPECT_EQ(p.port, 3);
  EXPECT_EQ(p.latencyUs, 1.5F);
  EXPECT_EQ(p.maxComms, 77);
  EXPECT_EQ(p.maxRecvs, 5);
  EXPECT_EQ(p.deviceType, NCCL_NET_DEVICE_HOST);
  EXPECT_EQ(p.deviceVersion, since(9) ? 9 : 0) << "older collNets are the host's";
  EXPECT_EQ(p.regIsGlobal, since(8));
  EXPECT_EQ(p.forceFlush, since(9));
  EXPECT_EQ(p.physical, since(9) ? (std::vector<int>{7, 5, 4, 6}) : std::vector<int>{2});
  EXPECT_EQ(p.maxP2pBytes, since(9) ? 0x123456789U : std::size_t{1} << 30);
  EXPECT_EQ(p.maxCollBytes, since(9) ? 0x98765432U : std::size_t{1} << 29);
  EXPECT_EQ(p.maxMultiRequestSize, since(11) ? 4 : 1);
  EXPECT_EQ(p.railId, since(12) ? 0x1234 : -1);
  EXPECT_EQ(p.planeId, since(12) ? -0x1234 : -1);
}

TEST_P(CollNetArguments, FieldsThatAPluginLeavesAloneSayNothing) {
  const ScopedEnv faults("TEST_NET_FAULT", "records,few-fields");
  const OpenCollNet plugin(GetParam());
  const plugin::NetProperties p = plugin.net->properties(1).value();
  EXPECT_EQ(p.physical, std::vector<int>{1});
  EXPECT_EQ(p.railId, -1);
  EXPECT_EQ(p.planeId, -1);
}

TEST_P(CollNetArguments, ContextsComeBackToListenAndFinalize) {
  const ScopedEnv faults("TEST_NET_FAULT", "records");
  const OpenCollNet plugin(GetParam(), {.commId = 0xfedcba9876543210});
  const auto said = record().collInit;
  EXPECT_TRUE(said.hasLog);
  EXPECT_TRUE(said.isEmpty);
  EXPECT_EQ(said.commId, since(11) ? 0xfedcba9876543210U : 0U);
  EXPECT_EQ(said.context != nullptr, since(11));
  EXPECT_EQ(record().collListen.context, said.context);
  auto second = plugin.source->attempt({.commId = 5});
  ASSERT_NE(second.net, nullptr);
  void* const another = record().collInit.context;
  EXPECT_EQ(another != said.context, since(11)) << "one for each communicator";
  plugin::NetHandle handle{};
  void* const listener = second.net->listen(1, handle).value();
  EXPECT_EQ(record().collListen.context, another);
  EXPECT_EQ(record().collListen.device, 1);
  EXPECT_TRUE(record().collListen.handleIsBlank);
  EXPECT_TRUE(record().collListen.isEmpty);
  EXPECT_TRUE(second.net->closeListen(listener).ok());
  EXPECT_EQ(record().closed.listener, listener);
  second.net.reset();
  EXPECT_EQ(record().collFinalized, another);
  EXPECT_EQ(plugin.counts->strangers, 0);
}

TEST_P(CollNetArguments, ConnectGetsTheHandlesOfAllInOrderOfRank) {
  const ScopedEnv faults("TEST_NET_FAULT", "records");
  const OpenCollNet plugin(GetParam());
  std::array<plugin::NetHandle, 5> handles{};
  void* const connection = plugin.net->connect(handles, 3, plugin.listener).value();
  const auto said = record().collConnect;
  ASSERT_EQ(said.n, 5);
  for (std::size_t i = 0; i < handles.size(); ++i) EXPECT_EQ(said.handles[i], handles[i].data());
  EXPECT_EQ(said.rank, 3);
  EXPECT_EQ(said.listener, plugin.listener);
  EXPECT_TRUE(said.isEmpty);
  EXPECT_TRUE(plugin.net->close(connection).ok());
  EXPECT_EQ(record().closed.collective, connection);
}

TEST_P(CollNetArguments, SupportIsAskedOfATypeAndAnOperation) {
  const ScopedEnv faults("TEST_NET_FAULT", "records");
  const OpenCollNet plugin(GetParam());
  EXPECT_FALSE(plugin.net->reduces({ncclBfloat16, ncclMin}).value());
  EXPECT_EQ(record().collSupport.type, ncclBfloat16);
  EXPECT_EQ(record().collSupport.op, ncclMin);
  EXPECT_TRUE(record().collSupport.isEmpty);
}

TEST_P(CollNetArguments, RegistrationsGetTheMemoryAndItsKind) {
  const ScopedEnv faults("TEST_NET_FAULT", "records,dma-buf");
  const OpenCollNet plugin(GetParam());
  std::array<char, 48> memory{};
  void* handle =
      plugin.net->registerMemory(plugin.connection, memory.data(), memory.size(), plugin::PtrKind::Host).value();
  EXPECT_EQ(record().registration.comm, plugin.connection);
  EXPECT_EQ(record().registration.data, memory.data());
  EXPECT_EQ(record().registration.bytes, memory.size());
  EXPECT_EQ(record().registration.type, NCCL_PTR_HOST);
  EXPECT_FALSE(record().registration.isDmaBuf);
  EXPECT_TRUE(plugin.net->deregisterMemory(plugin.connection, handle).ok());
  EXPECT_EQ(record().deregistration.comm, plugin.connection);
  EXPECT_EQ(record().deregistration.handle, handle);

  ASSERT_TRUE(plugin.net->takesDmaBuf());
  handle = plugin.net->registerDmaBuf(plugin.connection, memory.data(), memory.size(), 0x123456789a, 4321).value();
  const auto said = record().registration;
  EXPECT_TRUE(said.isDmaBuf);
  EXPECT_EQ(said.comm, plugin.connection);
  EXPECT_EQ(said.data, memory.data());
  EXPECT_EQ(said.bytes, memory.size());
  EXPECT_EQ(said.type, NCCL_PTR_CUDA);
  EXPECT_EQ(said.offset, 0x123456789aU);
  EXPECT_EQ(said.fd, 4321);
  EXPECT_TRUE(plugin.net->deregisterMemory(plugin.connection, handle).ok());
}

TEST_P(CollNetArguments, ReductionsGetElementsBothPlacesAndBothRegistrations) {
  const ScopedEnv faults("TEST_NET_FAULT", "records");
  OpenCollNet plugin(GetParam());
  Buffers memory;
  const auto request =
      plugin.net->iallreduce(plugin.connection, memory.send(7), memory.recv(7), {ncclUint32, ncclProd});
  EXPECT_TRUE(plugin.finished(request, 28));
  const auto said = record().allReduce;
  EXPECT_EQ(said.comm, plugin.connection);
  EXPECT_EQ(said.send, memory.from.data() + 2);
  EXPECT_EQ(said.recv, memory.to.data() + 3);
  EXPECT_EQ(said.sendHandle, &memory.sendHandle);
  EXPECT_EQ(said.recvHandle, &memory.recvHandle);
  EXPECT_EQ(said.count, 7U);
  EXPECT_EQ(said.type, ncclUint32);
  EXPECT_EQ(said.op, ncclProd);
  EXPECT_EQ(record().collTest.request, request.value());
  EXPECT_EQ(record().collTest.offersSizes, kTestNetMost);
  EXPECT_EQ(memory.to[3], 3);
  EXPECT_EQ(memory.to[9], 9);
}

TEST_P(CollNetArguments, GathersGetTheWindowAsOnePart) {
  if (!since(8)) return;
  const ScopedEnv faults("TEST_NET_FAULT", "records");
  OpenCollNet plugin(GetParam());
  Buffers memory;
  const auto request = plugin.net->iallgather(plugin.connection, memory.send(5), memory.recv(5),
                                              {.bytesPerRank = 0x1234567890, .offset = 0x234567890a, .bytes = 20});
  EXPECT_TRUE(plugin.finished(request, 20));
  const auto said = record().allGather;
  EXPECT_EQ(said.comm, plugin.connection);
  EXPECT_EQ(said.send, memory.from.data() + 2);
  EXPECT_EQ(said.sendHandle, &memory.sendHandle);
  EXPECT_EQ(said.parts, 1);
  EXPECT_EQ(said.part.address, memory.to.data() + 3);
  EXPECT_EQ(said.part.mhandle, &memory.recvHandle);
  EXPECT_EQ(said.part.size, 20U);
  EXPECT_EQ(said.bytesPerRank, 0x1234567890U);
  EXPECT_EQ(said.windowOffset, 0x234567890aU);
  EXPECT_EQ(said.windowBytes, 20U);
  EXPECT_EQ(memory.to[7], 7);
}

TEST_P(CollNetArguments, ScattersGetTheWindowAsOnePart) {
  if (!since(8)) return;
  const ScopedEnv faults("TEST_NET_FAULT", "records");
  OpenCollNet plugin(GetParam());
  Buffers memory;
  const auto request = plugin.net->ireducescatter(plugin.connection, memory.send(4), memory.recv(4),
                                                  {.bytesPerRank = 0x1234567890, .offset = 0x234567890a, .bytes = 16},
                                                  {ncclInt64, ncclMax});
  EXPECT_TRUE(plugin.finished(request, 16));
  const auto said = record().reduceScatter;
  EXPECT_EQ(said.comm, plugin.connection);
  EXPECT_EQ(said.recv, memory.to.data() + 3);
  EXPECT_EQ(said.recvHandle, &memory.recvHandle);
  EXPECT_EQ(said.parts, 1);
  EXPECT_EQ(said.part.address, memory.from.data() + 2);
  EXPECT_EQ(said.part.mhandle, &memory.sendHandle);
  EXPECT_EQ(said.part.size, 16U);
  EXPECT_EQ(said.bytesPerRank, 0x1234567890U);
  EXPECT_EQ(said.windowOffset, 0x234567890aU);
  EXPECT_EQ(said.windowBytes, 16U);
  EXPECT_EQ(said.type, ncclInt64);
  EXPECT_EQ(said.op, ncclMax);
  EXPECT_EQ(memory.to[6], 6);
}

TEST_P(CollNetArguments, CollectivesWithoutRoomHaveNoRequest) {
  const ScopedEnv faults("TEST_NET_FAULT", "coll-busy");
  OpenCollNet plugin(GetParam());
  Buffers memory;
  const auto reduce = [&] {
    return plugin.net->iallreduce(plugin.connection, memory.send(1), memory.recv(1), {ncclFloat32, ncclSum});
  };
  EXPECT_EQ(reduce().value(), nullptr);
  EXPECT_TRUE(plugin.finished(reduce(), 4));
  if (!since(8)) return;
  const plugin::CollNetWindow window{.bytesPerRank = 4, .offset = 0, .bytes = 4};
  const auto gather = [&] { return plugin.net->iallgather(plugin.connection, memory.send(1), memory.recv(1), window); };
  EXPECT_EQ(gather().value(), nullptr);
  EXPECT_TRUE(plugin.finished(gather(), 4));
  const auto scatter = [&] {
    return plugin.net->ireducescatter(plugin.connection, memory.send(1), memory.recv(1), window, {});
  };
  EXPECT_EQ(scatter().value(), nullptr);
  EXPECT_TRUE(plugin.finished(scatter(), 4));
}

TEST_P(CollNetArguments, FlushesGetWhatWasReceived) {
  const ScopedEnv faults("TEST_NET_FAULT", "records");
  const OpenCollNet plugin(GetParam());
  Buffers memory;
  EXPECT_EQ(plugin.net->iflush(plugin.connection, memory.recv(3)).value(), nullptr);
  const auto said = record().collFlush;
  EXPECT_EQ(said.comm, plugin.connection);
  EXPECT_EQ(said.data, memory.to.data() + 3);
  EXPECT_EQ(said.bytes, 12U);
  EXPECT_EQ(said.handle, &memory.recvHandle);
  EXPECT_TRUE(said.isEmpty);
}

TEST_P(CollNetArguments, FusionsGetTheDevicesInTheirOrder) {
  if (!since(9)) return;
  const ScopedEnv faults("TEST_NET_FAULT", "records,ports=8");
  const OpenCollNet plugin(GetParam());
  const std::vector<int> devices{6, 1, 4};
  EXPECT_EQ(plugin.net->makeVirtual(devices).device, 8);
  const auto said = record().collFusion;
  ASSERT_EQ(said.n, 3);
  EXPECT_EQ(std::vector<int>(said.devices, said.devices + 3), devices);
  EXPECT_EQ(plugin.net->properties(8).value().physical, devices);
}

}  // namespace
}  // namespace tutti::test
