// Whether everything that the library says to a network reaches plugins of every version, and everything back.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plugin/network/net_plugin.h"
#include "plugin/plugin_fixture.h"
#include "plugin/profiler.h"
#include "plugin/recorded_profiler.h"

namespace tutti::test {
namespace {

class NetArguments : public NetArgumentsOf {};
INSTANTIATE_TEST_SUITE_P(Versions, NetArguments, testing::Values(6, 7, 8, 9, 10, 11, 12),
                         [](const auto& test) { return "V" + std::to_string(test.param); });

/// Faults of all versions, for one test: what is recorded stands among them.
struct Faults {
  ScopedEnv environment;
  explicit Faults(const std::string& more = "")
      : environment("TEST_NET_FAULT", ("records" + (more.empty() ? "" : "," + more)).c_str()) {}
};

TEST_P(NetArguments, EveryFieldOfTheOldestPropertiesArrives) {
  const Faults faults("every-field");
  const OpenPlugin plugin(GetParam());
  const plugin::NetProperties p = plugin.net->properties(2).value();
  EXPECT_EQ(record().properties.device, 2);
  EXPECT_EQ(p.name, "test2");
  EXPECT_EQ(p.pciPath, "/sys/devices/pci0000:00/0000:00:03.0");
  EXPECT_EQ(p.guid, 0xfedcba9876543210U);
  EXPECT_EQ(p.ptrSupport, NCCL_PTR_HOST | NCCL_PTR_CUDA | NCCL_PTR_DMABUF);
  EXPECT_EQ(p.speedMbps, 25000);
  EXPECT_EQ(p.port, 3);
  EXPECT_EQ(p.latencyUs, 1.5F);
  EXPECT_EQ(p.maxComms, 77);
  EXPECT_EQ(p.maxRecvs, 5);
}

TEST_P(NetArguments, EveryFieldOfNewerPropertiesArrivesSinceItsVersion) {
  const Faults faults("every-field");
  const OpenPlugin plugin(GetParam());
  const plugin::NetProperties p = plugin.net->properties(1).value();
  EXPECT_EQ(p.deviceType, NCCL_NET_DEVICE_HOST);
  EXPECT_EQ(p.deviceVersion, since(7) ? 9 : 0);
  EXPECT_EQ(p.regIsGlobal, since(8));
  EXPECT_EQ(p.forceFlush, since(9));
  EXPECT_EQ(p.physical, since(9) ? (std::vector<int>{7, 5, 4, 6}) : std::vector<int>{1});
  EXPECT_EQ(p.maxP2pBytes, since(9) ? 0x123456789U : std::size_t{1} << 30);
  EXPECT_EQ(p.maxCollBytes, since(9) ? 0x98765432U : std::size_t{1} << 29);
  EXPECT_EQ(p.maxMultiRequestSize, since(11) ? 4 : 1);
  EXPECT_EQ(p.railId, since(12) ? 0x1234 : -1);
  EXPECT_EQ(p.planeId, since(12) ? -0x1234 : -1);
}

/// A plugin that was written for an older version, and put into a newer table, writes fewer fields.
TEST_P(NetArguments, FieldsThatAPluginLeavesAloneSayNothing) {
  const Faults faults("few-fields");
  const OpenPlugin plugin(GetParam());
  EXPECT_TRUE(record().properties.isBlank) << "before init was over";
  const plugin::NetProperties p = plugin.net->properties(1).value();
  EXPECT_TRUE(record().properties.isBlank);
  EXPECT_EQ(p.deviceType, NCCL_NET_DEVICE_HOST);
  EXPECT_EQ(p.physical, std::vector<int>{1});
  EXPECT_FALSE(p.forceFlush);
  EXPECT_EQ(p.railId, -1);
  EXPECT_EQ(p.planeId, -1);
}

TEST_P(NetArguments, InitGetsWhatItsVersionTakes) {
  const Faults faults;
  const OpenPlugin plugin(GetParam(), {.commId = 0xfedcba9876543210, .trafficClass = 7});
  const auto said = record().init;
  EXPECT_TRUE(said.hasLog);
  EXPECT_EQ(said.hasProfile, since(10));
  EXPECT_TRUE(said.isEmpty);
  EXPECT_EQ(said.commId, since(11) ? 0xfedcba9876543210 : 0U);
  EXPECT_EQ(said.trafficClass, since(11) ? 7 : -2);
}

TEST_P(NetArguments, TheTrafficClassOfNobodyIsMinusOne) {
  const Faults faults;
  const OpenPlugin plugin(GetParam());
  { const Loop loop(*plugin.net); }
  EXPECT_EQ(record().init.trafficClass, since(11) ? NCCL_NET_TRAFFIC_CLASS_UNDEF : -2);
  EXPECT_EQ(record().connect.trafficClass, GetParam() == 10 ? NCCL_NET_TRAFFIC_CLASS_UNDEF : -2);
}

TEST_P(NetArguments, ContextsComeBackToListenConnectAndFinalize) {
  const Faults faults;
  OpenPlugin first(GetParam());
  void* const context = record().init.context;
  auto second = first.source->attempt({});
  ASSERT_NE(second.net, nullptr);
  void* const another = record().init.context;
  EXPECT_EQ(context != another, since(11)) << "one for each communicator";
  { const Loop loop(*first.net); }
  EXPECT_EQ(record().listen.context, context);
  EXPECT_EQ(record().connect.context, context);
  { const Loop loop(*second.net); }
  EXPECT_EQ(record().listen.context, another);
  EXPECT_EQ(record().connect.context, another);
  first.net.reset();
  EXPECT_EQ(record().finalized, context);
  second.net.reset();
  EXPECT_EQ(record().finalized, another);
  EXPECT_EQ(first.counts->strangers, 0);
}

TEST_P(NetArguments, ConnectGetsTheDeviceAndTheSameHandleUntilItIsDone) {
  const Faults faults("busy");
  const OpenPlugin plugin(GetParam());
  plugin::NetHandle handle{};
  void* const listener = plugin.net->listen(3, handle).value();
  EXPECT_EQ(record().listen.device, 3);
  EXPECT_TRUE(record().listen.handleIsBlank);
  EXPECT_TRUE(record().listen.isEmpty);
  void* sender = nullptr;
  for (int call = 1; call <= 4; ++call) {
    EXPECT_EQ(sender, nullptr);
    sender = plugin.net->connect(2, handle).value();
    const auto said = record().connect;
    EXPECT_EQ(said.device, 2);
    EXPECT_EQ(said.handle, handle.data());
    EXPECT_TRUE(said.knowsOwn);
    EXPECT_EQ(said.calls, call) << "what connect() writes into the handle stays there";
    EXPECT_TRUE(said.isEmpty);
    EXPECT_EQ(said.offersKernels, since(7));
  }
  ASSERT_NE(sender, nullptr);
  void* receiver = nullptr;
  for (int call = 1; call <= 4; ++call) receiver = plugin.net->accept(listener).value();
  ASSERT_NE(receiver, nullptr);
  EXPECT_EQ(record().accept.listener, listener);
  EXPECT_TRUE(record().accept.isEmpty);
  EXPECT_EQ(record().accept.offersKernels, since(7));
  EXPECT_TRUE(plugin.net->closeListen(listener).ok());
  EXPECT_EQ(record().closed.listener, listener);
  EXPECT_TRUE(plugin.net->closeSend(sender).ok());
  EXPECT_EQ(record().closed.sender, sender);
  EXPECT_TRUE(plugin.net->closeRecv(receiver).ok());
  EXPECT_EQ(record().closed.receiver, receiver);
  EXPECT_EQ(plugin.counts->openEnds, 0);
}

TEST_P(NetArguments, RegistrationsGetTheMemoryAndItsKind) {
  const Faults faults("gdr");
  const OpenPlugin plugin(GetParam());
  const Loop loop(*plugin.net);
  std::array<char, 48> memory{};
  for (const plugin::PtrKind kind : {plugin::PtrKind::Host, plugin::PtrKind::Cuda}) {
    void* const handle = plugin.net->registerMemory(loop.receiver, memory.data(), memory.size(), kind).value();
    const auto said = record().registration;
    EXPECT_EQ(said.comm, loop.receiver);
    EXPECT_EQ(said.data, memory.data());
    EXPECT_EQ(said.bytes, memory.size());
    EXPECT_EQ(said.type, kind == plugin::PtrKind::Host ? NCCL_PTR_HOST : NCCL_PTR_CUDA);
    EXPECT_TRUE(said.isEmpty);
    EXPECT_FALSE(said.isDmaBuf);
    EXPECT_TRUE(plugin.net->deregisterMemory(loop.receiver, handle).ok());
    EXPECT_EQ(record().deregistration.comm, loop.receiver);
    EXPECT_EQ(record().deregistration.handle, memory.data());
  }
  EXPECT_EQ(plugin.counts->gpuRegistrations, 1);
  EXPECT_EQ(plugin.counts->registrations, 0);
}

TEST_P(NetArguments, DmaBufsAreRegisteredWithOffsetAndDescriptor) {
  const Faults faults("dma-buf");
  const OpenPlugin plugin(GetParam());
  ASSERT_TRUE(plugin.net->takesDmaBuf());
  const Loop loop(*plugin.net);
  std::array<char, 48> memory{};
  const std::uint64_t offset = 0x123456789a;
  void* const handle = plugin.net->registerDmaBuf(loop.sender, memory.data(), memory.size(), offset, 12345).value();
  const auto said = record().registration;
  EXPECT_TRUE(said.isDmaBuf);
  EXPECT_EQ(said.comm, loop.sender);
  EXPECT_EQ(said.data, memory.data());
  EXPECT_EQ(said.bytes, memory.size());
  EXPECT_EQ(said.type, NCCL_PTR_CUDA) << "a dma-buf is a capability, never a kind of memory";
  EXPECT_EQ(said.offset, offset);
  EXPECT_EQ(said.fd, 12345);
  EXPECT_TRUE(said.isEmpty);
  EXPECT_TRUE(plugin.net->deregisterMemory(loop.sender, handle).ok());
  EXPECT_EQ(record().deregistration.handle, handle);
}

TEST_P(NetArguments, ARegistrationMaySucceedWithoutAHandle) {
  const Faults faults("no-handles");
  const OpenPlugin plugin(GetParam());
  const Loop loop(*plugin.net);
  char byte = 0;
  const auto registration = plugin.net->registerMemory(loop.sender, &byte, 1, plugin::PtrKind::Host);
  ASSERT_TRUE(registration.ok());
  EXPECT_EQ(registration.value(), nullptr);
  EXPECT_TRUE(plugin.net->deregisterMemory(loop.sender, nullptr).ok());
  EXPECT_EQ(record().deregistration.comm, loop.sender);
  EXPECT_EQ(record().deregistration.handle, nullptr);
  EXPECT_EQ(plugin.counts->registrations, 0);
}

TEST_P(NetArguments, MessagesGetTheirPlaceTagAndRegistration) {
  const Faults faults;
  const OpenPlugin plugin(GetParam());
  Loop loop(*plugin.net);
  std::array<char, 100> from{};
  std::array<char, 200> to{};
  void* const out = plugin.net->registerMemory(loop.sender, from.data(), from.size(), plugin::PtrKind::Host).value();
  void* const in = plugin.net->registerMemory(loop.receiver, to.data(), to.size(), plugin::PtrKind::Host).value();
  plugin::NetEventParent nobodyListens;
  const plugin::NetBuffer message{from.data() + 10, 70, -5, out, &nobodyListens};
  const plugin::NetBuffer place{to.data() + 20, 150, 1 << 30, in, &nobodyListens};

  void* const send = plugin.net->isend(loop.sender, message).value();
  const auto sent = record().send;
  EXPECT_EQ(sent.comm, loop.sender);
  EXPECT_EQ(sent.data, message.data);
  EXPECT_EQ(sent.bytes, message.bytes);
  EXPECT_EQ(sent.tag, message.tag);
  EXPECT_EQ(sent.handle, out);
  EXPECT_EQ(sent.event, since(10) ? message.events : nullptr);
  EXPECT_TRUE(sent.isEmpty);

  void* const receive = plugin.net->irecv(loop.receiver, std::span(&place, 1)).value();
  const auto received = record().receive;
  EXPECT_EQ(received.comm, loop.receiver);
  EXPECT_EQ(received.n, 1);
  EXPECT_EQ(received.data[0], place.data);
  EXPECT_EQ(received.sizes[0], place.bytes);
  EXPECT_EQ(received.tags[0], place.tag);
  EXPECT_EQ(received.handles[0], in);
  EXPECT_EQ(received.events[0], since(10) ? place.events : nullptr);
  EXPECT_TRUE(received.isEmpty);

  int bytes = 0;
  while (!plugin.net->test(receive, std::span(&bytes, 1)).value()) {
  }
  EXPECT_EQ(record().test.request, receive);
  EXPECT_EQ(record().test.offersSizes, kTestNetMost);
  EXPECT_EQ(bytes, 70);
  while (!plugin.net->test(send, {}).value()) {
  }
  EXPECT_EQ(record().test.request, send);
  EXPECT_TRUE(plugin.net->deregisterMemory(loop.sender, out).ok());
  EXPECT_TRUE(plugin.net->deregisterMemory(loop.receiver, in).ok());
}

TEST_P(NetArguments, AGroupOfReceivesIsOneRequestWithASizeForEach) {
  const Faults faults("groups");
  const OpenPlugin plugin(GetParam());
  EXPECT_EQ(plugin.net->properties(0).value().maxRecvs, kTestNetMost);
  const Loop loop(*plugin.net);
  std::array<char, 8000> memory{};
  plugin::NetEventParent nobodyListens;
  std::vector<plugin::NetBuffer> places;
  for (int i = 0; i < kTestNetMost; ++i) {
    char* const at = memory.data() + 1000 * i;
    places.push_back({at, static_cast<std::size_t>(900 + i), 40 - i, at + 1, i % 2 == 0 ? &nobodyListens : nullptr});
  }
  void* const request = plugin.net->irecv(loop.receiver, places).value();
  const auto said = record().receive;
  ASSERT_EQ(said.n, kTestNetMost);
  for (std::size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(said.data[i], places[i].data);
    EXPECT_EQ(said.sizes[i], places[i].bytes);
    EXPECT_EQ(said.tags[i], places[i].tag);
    EXPECT_EQ(said.handles[i], places[i].registration);
    EXPECT_EQ(said.events[i], since(10) ? places[i].events : nullptr);
  }
  std::array<int, kTestNetMost> sizes{};
  EXPECT_TRUE(plugin.net->test(request, sizes).value());
  EXPECT_EQ(sizes, (std::array<int, kTestNetMost>{900, 900, 900, 900, 900, 900, 900, 900})) << "i less than fit";
}

TEST_P(NetArguments, FlushesGetWhatWasReceived) {
  const Faults faults("gdr,groups");
  const OpenPlugin plugin(GetParam());
  const Loop loop(*plugin.net);
  std::array<char, 100> memory{};
  const std::array<plugin::NetBuffer, 3> places{
      plugin::NetBuffer{memory.data(), 10, 1, memory.data() + 1, nullptr},
      plugin::NetBuffer{memory.data() + 20, 30, 2, memory.data() + 2, nullptr},
      plugin::NetBuffer{memory.data() + 60, 40, 3, memory.data() + 3, nullptr}};
  EXPECT_EQ(plugin.net->iflush(loop.receiver, places).value(), nullptr);
  const auto said = record().flush;
  EXPECT_EQ(said.comm, loop.receiver);
  EXPECT_TRUE(said.isEmpty);
  ASSERT_EQ(said.n, 3);
  for (std::size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(said.data[i], places[i].data);
    EXPECT_EQ(said.sizes[i], places[i].bytes);
    EXPECT_EQ(said.handles[i], places[i].registration);
  }
  void* const second = plugin.net->iflush(loop.receiver, places).value();
  ASSERT_NE(second, nullptr);
  EXPECT_FALSE(plugin.net->test(second, {}).value());
  EXPECT_TRUE(plugin.net->test(second, {}).value());
  EXPECT_EQ(plugin.counts->flushes, 2);
}

TEST_P(NetArguments, FusionsGetTheDevicesInTheirOrder) {
  const Faults faults("ports=8");
  const OpenPlugin plugin(GetParam());
  if (!since(9)) return;
  const std::vector<int> devices{6, 1, 4};
  EXPECT_EQ(plugin.net->makeVirtual(devices).device, 8);
  const auto said = record().fusion;
  ASSERT_EQ(said.n, 3);
  EXPECT_EQ(std::vector<int>(said.devices, said.devices + 3), devices);
  EXPECT_EQ(plugin.net->properties(8).value().physical, devices);
}

/// What the profiler of the process hears of messages: the plugin says that they start, what they are and that they
/// end.
TEST_P(NetArguments, EventsOfMessagesReachTheProfilerAsPartsOfTheirSteps) {
  const Faults faults;
  const std::string file = pluginFolder() + "/libnccl-profiler-testv6.so";
  const RecordedProfiler profiler(file);
  ASSERT_TRUE(profiler.loaded());
  profiler.reset(ncclProfileNetPlugin);
  const std::shared_ptr<plugin::EventSink> sink = plugin::openProfiler(file, {.commId = 1});
  ASSERT_NE(sink, nullptr);
  plugin::Event stepEvent{};
  stepEvent.type = ncclProfileProxyStep;
  void* const step = sink->start(stepEvent);
  plugin::NetEventParent parent;
  parent.set(sink, step, 3);
  const OpenPlugin plugin(GetParam());
  Loop loop(*plugin.net);
  profiler.reset(ncclProfileNetPlugin);
  std::array<char, 100> from{};
  std::array<char, 100> to{};
  const plugin::NetBuffer place{to.data(), to.size(), 0, nullptr, &parent};
  void* const receive = plugin.net->irecv(loop.receiver, std::span(&place, 1)).value();
  void* const send = plugin.net->isend(loop.sender, {from.data(), 60, 0, nullptr, &parent}).value();
  while (!plugin.net->test(receive, {}).value()) {
  }
  while (!plugin.net->test(send, {}).value()) {
  }
  const auto starts = profiler.records("start");
  ASSERT_EQ(starts.size(), since(10) ? 2U : 0U);
  const auto stops = profiler.records("stop");
  ASSERT_EQ(stops.size(), starts.size());
  for (const auto& start : starts) {
    EXPECT_EQ(start.type, ncclProfileNetPlugin);
    EXPECT_EQ(start.parent, reinterpret_cast<long>(step));
    EXPECT_EQ(start.rank, 3);
    const std::string text = start.text;
    EXPECT_TRUE(text.starts_with("id=" + std::to_string(kTestNetEventId) + " data=0x")) << text;
    EXPECT_EQ(std::count_if(stops.begin(), stops.end(), [&](const auto& stop) { return stop.handle == start.handle; }),
              1);
  }
  const auto updates = profiler.records("state", ncclProfilerNetPluginUpdate);
  EXPECT_EQ(updates.size(), starts.size());
  for (const auto& update : updates) EXPECT_TRUE(std::string(update.text).starts_with("data=0x")) << update.text;
  parent.clear();
}

/// Networks that kernels drive are refused, so nothing of theirs is asked of the others.
TEST_P(NetArguments, NothingIsAskedThatOnlyKernelsNeed) {
  const Faults faults("gdr");
  const OpenPlugin plugin(GetParam());
  Loop loop(*plugin.net);
  char from = 1;
  char to = 0;
  const plugin::NetBuffer place{&to, 1, 0, nullptr};
  void* const receive = plugin.net->irecv(loop.receiver, std::span(&place, 1)).value();
  void* const send = plugin.net->isend(loop.sender, {&from, 1, 0, nullptr}).value();
  while (!plugin.net->test(receive, {}).value()) {
  }
  while (!plugin.net->test(send, {}).value()) {
  }
  EXPECT_EQ(to, 1);
  EXPECT_EQ(plugin.counts->offloadCalls, 0);
}

}  // namespace
}  // namespace tutti::test
