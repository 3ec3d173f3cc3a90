// Networks of plugins of every version, from init to finalize.
#include "plugin/network/net_plugin.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "plugin/plugin_fixture.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

constexpr int kVersions[] = {6, 7, 8, 9, 10, 11, 12};

class NetPlugin : public testing::TestWithParam<int> {
 protected:
  /// The variable of the faults of the version under test.
  const char* faultName() {
    fault_ = "TEST_NET_FAULT_V" + std::to_string(GetParam());
    return fault_.c_str();
  }

 private:
  std::string fault_;
};
INSTANTIATE_TEST_SUITE_P(Versions, NetPlugin, testing::ValuesIn(kVersions),
                         [](const auto& test) { return "V" + std::to_string(test.param); });

using Bytes = std::vector<char>;

Bytes pattern(std::size_t bytes, int seed) {
  Bytes text(bytes);
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 31 + static_cast<std::size_t>(seed));
  return text;
}

/// Calls until there is a request, or an error; a time that only a hang takes ends it.
template <class F>
Result<void*> insist(F&& post) {
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);;) {
    auto request = post();
    if (!request.ok() || request.value() != nullptr || std::chrono::steady_clock::now() > end) return request;
  }
}
/// The same for completion: the bytes that came; -1 on an error or a hang.
long finish(plugin::Net& net, void* request, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  for (const auto end = std::chrono::steady_clock::now() + limit; std::chrono::steady_clock::now() < end;) {
    int bytes = 0;
    const auto done = net.test(request, std::span(&bytes, 1));
    if (!done.ok()) return -1;
    if (done.value()) return bytes;
  }
  return -1;
}

/// Sends messages of these sizes, all under way at once, and receives them into larger buffers.
void carryAll(Loop& loop, const std::vector<std::size_t>& sizes) {
  std::vector<Bytes> sent;
  std::vector<Bytes> received;
  std::vector<void*> sends;
  std::vector<void*> receives;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Bytes& from = sent.emplace_back(pattern(sizes[i], static_cast<int>(i)));
    Bytes& to = received.emplace_back(sizes[i] + 100, '\0');
    const plugin::NetBuffer into{to.data(), to.size(), 1, nullptr};
    auto receive = insist([&] { return loop.net.irecv(loop.receiver, std::span(&into, 1)); });
    auto send = insist([&] { return loop.net.isend(loop.sender, {from.data(), from.size(), 1, nullptr}); });
    ASSERT_TRUE(receive.ok() && send.ok() && receive.value() != nullptr && send.value() != nullptr) << i;
    receives.push_back(receive.value());
    sends.push_back(send.value());
  }
  // A long message leaves only while its receiver takes it, so both ends are asked in turn.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (std::size_t left = 2 * sizes.size(); left > 0;) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << left << " requests never complete";
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (int bytes = 0; receives[i] != nullptr && loop.net.test(receives[i], std::span(&bytes, 1)).value()) {
        EXPECT_EQ(bytes, static_cast<int>(sizes[i]));
        receives[i] = nullptr;
        --left;
      }
      if (sends[i] != nullptr && loop.net.test(sends[i], {}).value()) {
        sends[i] = nullptr;
        --left;
      }
    }
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    received[i].resize(sizes[i]);
    EXPECT_TRUE(received[i] == sent[i]) << "message " << i;
  }
}

TEST_P(NetPlugin, SaysWhatItIs) {
  const OpenPlugin plugin(GetParam());
  ASSERT_NE(plugin.net, nullptr);
  EXPECT_EQ(plugin.source->version(), GetParam());
  EXPECT_EQ(plugin.net->name(), networkName(GetParam()));
  EXPECT_EQ(plugin.net->devices().value(), 1);
  const plugin::NetProperties p = plugin.net->properties(0).value();
  EXPECT_EQ(p.name, "test0");
  EXPECT_EQ(p.speedMbps, 10000 + GetParam());
  EXPECT_EQ(p.physical, std::vector<int>{0});
  EXPECT_EQ(p.railId, GetParam() < 12 ? -1 : 0);
  EXPECT_FALSE(plugin.net->takesDmaBuf());
}

TEST_P(NetPlugin, KeepsMessagesInOrder) {
  const OpenPlugin plugin(GetParam());
  {
    Loop loop(*plugin.net);
    carryAll(loop, {1, 0, 4096, 17, 300000, 0, 2, 65536});
    carryAll(loop, std::vector<std::size_t>(30, 1000));
  }
  EXPECT_EQ(plugin.counts->sawHint, 0);
  EXPECT_EQ(plugin.counts->openEnds, 0);
}

TEST_P(NetPlugin, CallsAgainWhereThereIsNoRoomYet) {
  const ScopedEnv fault(faultName(), "busy");
  const OpenPlugin plugin(GetParam());
  Loop loop(*plugin.net);
  carryAll(loop, {5, 6, 7, 8, 100000});
}

TEST_P(NetPlugin, TakesCompletionsLateAndInAnyOrder) {
  const ScopedEnv fault(faultName(), "reorder,delay=300");
  const OpenPlugin plugin(GetParam());
  Loop loop(*plugin.net);
  carryAll(loop, {5, 6, 7, 8, 100000});
}

TEST_P(NetPlugin, RegistersMemoryAndTakesItBack) {
  const OpenPlugin plugin(GetParam());
  Loop loop(*plugin.net);
  char memory[64];
  const auto registration = plugin.net->registerMemory(loop.sender, memory, sizeof(memory), plugin::PtrKind::Host);
  ASSERT_TRUE(registration.ok());
  EXPECT_EQ(registration.value(), memory);
  EXPECT_EQ(plugin.counts->registrations, 1);
  EXPECT_TRUE(plugin.net->deregisterMemory(loop.sender, registration.value()).ok());
  EXPECT_EQ(plugin.counts->registrations, 0);
}

TEST_P(NetPlugin, KeepsToTheLengthsOfItsVersion) {
  const OpenPlugin plugin(GetParam());
  Loop loop(*plugin.net);
  char byte = 0;
  const std::size_t tooLong = (std::size_t{1} << 30) + 1;
  const std::size_t tooMuch = std::size_t{1} << 31;
  if (GetParam() <= 8) {
    expectLog("isend: a message of 1073741825 bytes");
    EXPECT_EQ(plugin.net->isend(loop.sender, {&byte, tooLong, 0, nullptr}).status().code(), ncclInternalError);
    expectLog("irecv: a message of 1073741825 bytes");
    const plugin::NetBuffer buffer{&byte, tooLong, 0, nullptr};
    EXPECT_EQ(plugin.net->irecv(loop.receiver, std::span(&buffer, 1)).status().code(), ncclInternalError);
  }
  if (GetParam() <= 7) expectLog("regMr: 2147483648 bytes; this version of the interface registers at most 2147483647");
  const auto registration = plugin.net->registerMemory(loop.sender, &byte, tooMuch, plugin::PtrKind::Host);
  EXPECT_EQ(registration.ok(), GetParam() >= 8);
}

TEST_P(NetPlugin, IsInitialisedAsItsVersionWants) {
  const ScopedEnv records(faultName(), "records");
  OpenPlugin first(GetParam(), {.commId = 41, .trafficClass = 5});
  auto second = first.source->attempt({.commId = 42, .trafficClass = 6});
  ASSERT_NE(second.net, nullptr);
  const bool perCommunicator = GetParam() >= 11;
  EXPECT_EQ(first.counts->inits, perCommunicator ? 2 : 1);
  if (perCommunicator) {
    EXPECT_EQ(netRecordOf(GetParam()).init.commId, 42U);
    EXPECT_EQ(netRecordOf(GetParam()).init.trafficClass, 6);
  }
  if (GetParam() == 10) {
    { const Loop loop(*first.net); }
    EXPECT_EQ(netRecordOf(10).connect.trafficClass, 5);
    { const Loop loop(*second.net); }
    EXPECT_EQ(netRecordOf(10).connect.trafficClass, 6);
  }
  first.net.reset();
  EXPECT_EQ(first.counts->finalizes, perCommunicator ? 1 : 0);
  second.net.reset();
  EXPECT_EQ(first.counts->finalizes, perCommunicator ? 2 : 0);
  // The last one has left: the next one begins anew.
  EXPECT_NE(first.source->attempt({}).net, nullptr);
  EXPECT_EQ(first.counts->inits, perCommunicator ? 3 : 2);
}

TEST_P(NetPlugin, FusesOnlyWithinItsVersion) {
  const ScopedEnv records(faultName(), "records");
  const OpenPlugin plugin(GetParam());
  expectFusesAsItsVersionCan(*plugin.net, GetParam(), 3);
  if (!plugin.net->fuses()) return;
  EXPECT_EQ(netRecordOf(GetParam()).fusion.n, plugin.net->maxFused());
  // The plugin warns of it, which is no warning of ours: whether it is an error is for the caller to say.
  const std::vector<int> lone{0};
  const plugin::NetFusion refused = plugin.net->makeVirtual(lone);
  EXPECT_EQ(refused.device, -1);
  const char* const words =
      "makeVDevice failed with ncclInvalidArgument; it said: test net: makeVDevice: one device is no group";
  EXPECT_NE(refused.why.find(words), std::string::npos) << refused.why;
}

TEST_P(NetPlugin, SaysSoWhereFusingSucceedsWithoutADevice) {
  const ScopedEnv fault(faultName(), "no-fused");
  const OpenPlugin plugin(GetParam());
  if (!plugin.net->fuses()) return;
  const std::vector<int> devices{0, 1};
  const plugin::NetFusion made = plugin.net->makeVirtual(devices);
  EXPECT_EQ(made.device, -1);
  EXPECT_NE(made.why.find("it succeeded without a device"), std::string::npos) << made.why;
}

/// Every failure at the beginning says why, without a line of the library's own, and leaves nothing behind.
TEST_P(NetPlugin, RefusesWhatCannotBeUsed) {
  const struct {
    const char* fault;
    int since;
    const char* why;
    ncclResult_t code;
  } rows[] = {
      {"init", 6, "init failed with ncclSystemError; it said: test net: init: told to fail", ncclSystemError},
      {"init,odd-code", 6, "init failed with 12, which is no result code; it said", ncclInternalError},
      {"init,silent", 6, "init failed with ncclSystemError, and the network said nothing", ncclSystemError},
      {"devices", 6, "devices failed with ncclSystemError", ncclSystemError},
      {"zero-devices", 6, "it has no devices", ncclInvalidUsage},
      {"missing", 6, "its table has no isend", ncclInvalidUsage},
      {"no-name", 6, "device 0 cannot be used: it has no name", ncclInvalidUsage},
      {"unpack", 7, "must be unpacked by kernels", ncclInvalidUsage},
      {"unknown-device", 7, "Unknown device code index 7", ncclInvalidUsage},
      {"no-p2p-bytes", 9, "its maxP2pBytes is 0", ncclInvalidUsage},
  };
  for (const auto& row : rows) {
    if (GetParam() < row.since) continue;
    SCOPED_TRACE(row.fault);
    allowLog("told to fail");
    const ScopedEnv fault(faultName(), row.fault);
    std::string why;
    const DlLibrary library = DlLibrary::open(pluginPath(GetParam()), &why);
    ASSERT_TRUE(library.valid()) << why;
    const auto source = plugin::findNet(library, pluginPath(GetParam()));
    ASSERT_NE(source, nullptr);
    const auto attempt = source->attempt({});
    EXPECT_EQ(attempt.net, nullptr);
    EXPECT_EQ(attempt.code, row.code);
    EXPECT_NE(attempt.why.find(row.why), std::string::npos) << attempt.why;
    EXPECT_NE(attempt.why.find("network " + networkName(GetParam())), std::string::npos) << attempt.why;
    const TestNetCounts* counts = countsOf(GetParam());
    EXPECT_EQ(counts->finalizes, GetParam() >= 11 ? counts->inits : 0);
  }
}

TEST_P(NetPlugin, NamesTheCallThatFailed) {
  const struct {
    const char* call;
    bool step;  ///< moves data: whoever calls it tells of the failure
  } rows[] = {{"connect", false}, {"accept", false}, {"isend", true}, {"irecv", true}, {"test", true}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.call);
    const ScopedEnv fault(faultName(), row.call);
    OpenPlugin plugin(GetParam());
    const std::string start = "network " + networkName(GetParam()) + " (net v" + std::to_string(GetParam()) + " of " +
                              pluginPath(GetParam()) + "), device 0: " + row.call + " failed with ncclSystemError";
    expectLog(std::string(row.call) + ": told to fail");
    const std::string text = start + "; it said: test net: " + row.call + ": told to fail";
    if (!row.step) expectLog(text);
    plugin::NetHandle handle{};
    void* const listener = plugin.net->listen(0, handle).value();
    char byte = 0;
    const plugin::NetBuffer buffer{&byte, 1, 0, nullptr};
    const auto run = [&]() -> Status {
      ASSIGN(void* sender, plugin.net->connect(0, handle));
      const auto accepted = plugin.net->accept(listener);
      Status status = accepted.status();
      if (status.ok()) {
        const auto sent = plugin.net->isend(sender, buffer);
        const auto received = plugin.net->irecv(accepted.value(), std::span(&buffer, 1));
        status = sent.ok() ? received.status() : sent.status();
        if (status.ok()) status = plugin.net->test(received.value(), {}).status();
        TRY(plugin.net->closeRecv(accepted.value()));
      }
      TRY(plugin.net->closeSend(sender));
      return status;
    };
    EXPECT_EQ(run().code(), ncclSystemError);
    EXPECT_NE(std::string(lastErrorText()).find(start), std::string::npos) << lastErrorText();
    EXPECT_TRUE(plugin.net->closeListen(listener).ok());
    EXPECT_EQ(plugin.counts->openEnds, 0);
  }
}

TEST_P(NetPlugin, LetsNobodyWaitForARequestThatHangs) {
  const ScopedEnv fault(faultName(), "hang@1");
  const OpenPlugin plugin(GetParam());
  Loop loop(*plugin.net);
  char byte = 7;
  const plugin::NetBuffer buffer{&byte, 1, 0, nullptr};
  void* const send = plugin.net->isend(loop.sender, buffer).value();
  EXPECT_GE(finish(*plugin.net, send), 0);
  void* const again = plugin.net->isend(loop.sender, buffer).value();
  EXPECT_EQ(finish(*plugin.net, again, std::chrono::milliseconds(20)), -1);
}

TEST_P(NetPlugin, TellsHowLittleCame) {
  const ScopedEnv fault(faultName(), "short");
  const OpenPlugin plugin(GetParam());
  Loop loop(*plugin.net);
  Bytes from(1000, 'a');
  Bytes to(1000, 'b');
  const plugin::NetBuffer into{to.data(), to.size(), 0, nullptr};
  void* const receive = plugin.net->irecv(loop.receiver, std::span(&into, 1)).value();
  void* const send = plugin.net->isend(loop.sender, {from.data(), from.size(), 0, nullptr}).value();
  EXPECT_EQ(finish(*plugin.net, receive), 500);
  EXPECT_GE(finish(*plugin.net, send), 0);
}

TEST_P(NetPlugin, CarriesMessagesBetweenProcesses) {
  OpenPlugin plugin(GetParam());
  plugin::NetHandle handle{};
  void* const listener = plugin.net->listen(0, handle).value();
  const Bytes text = pattern(200000, 3);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Bytes copy = text;
    auto sender = insist([&] { return plugin.net->connect(0, handle); });
    if (!sender.ok() || sender.value() == nullptr) ::_exit(1);
    auto send = plugin.net->isend(sender.value(), {copy.data(), copy.size(), 0, nullptr});
    if (!send.ok() || finish(*plugin.net, send.value()) < 0) ::_exit(2);
    ::_exit(plugin.net->closeSend(sender.value()).ok() ? 0 : 3);
  }
  auto receiver = insist([&] { return plugin.net->accept(listener); });
  ASSERT_TRUE(receiver.ok() && receiver.value() != nullptr);
  Bytes received(text.size());
  const plugin::NetBuffer into{received.data(), received.size(), 0, nullptr};
  void* const receive = plugin.net->irecv(receiver.value(), std::span(&into, 1)).value();
  EXPECT_EQ(finish(*plugin.net, receive), static_cast<long>(text.size()));
  EXPECT_EQ(received, text);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);

  // The peer is gone: who still expects something is told so.
  expectLog("irecv: the peer closed the connection");
  EXPECT_EQ(plugin.net->irecv(receiver.value(), std::span(&into, 1)).status().code(), ncclRemoteError);
  EXPECT_NE(std::string_view(lastErrorText())
                .find("irecv failed with ncclRemoteError; it said: test net: irecv: the peer closed the connection"),
            std::string_view::npos)
      << lastErrorText();
  EXPECT_TRUE(plugin.net->closeRecv(receiver.value()).ok());
  EXPECT_TRUE(plugin.net->closeListen(listener).ok());
}

TEST(NetPluginExample, CarriesMessages) {
  const char* path = std::getenv("TUTTI_TEST_UNIX_NET");
  if (path == nullptr) GTEST_SKIP() << "the example plugin was not built";
  std::string why;
  const DlLibrary library = DlLibrary::open(path, &why);
  ASSERT_TRUE(library.valid()) << why;
  const auto source = plugin::findNet(library, path);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->name(), "unix");
  EXPECT_EQ(source->version(), 12);
  const auto attempt = source->attempt({});
  ASSERT_NE(attempt.net, nullptr) << attempt.why;
  Loop loop(*attempt.net);
  carryAll(loop, {1, 0, 4096, 1000000, 3});
}

TEST(NetPluginLibrary, WithoutAnInterfaceHasNoNetwork) {
  const ScopedLog log("INFO");
  const std::string path = pluginFolder() + "/libno-net.so";
  const DlLibrary library = DlLibrary::open(path);
  ASSERT_TRUE(library.valid());
  EXPECT_EQ(plugin::findNet(library, path), nullptr);
  // Which versions were looked for is told, but for the newest, which every older plugin lacks.
  for (int version = 6; version <= 11; ++version) {
    EXPECT_NE(capturedText().find("ncclOsDlsym(ncclNetPlugin_v" + std::to_string(version) + ") failed: "),
              std::string::npos);
  }
  EXPECT_EQ(capturedText().find("ncclNetPlugin_v12"), std::string::npos);
}

}  // namespace
}  // namespace tutti::test
