// Two ends of the network over verbs in one process, each with NICs of its own of the verbs library for tests.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "support/until.h"
#include "transport/net/ib/fake_verbs.h"
#include "transport/net/ib/source.h"
#include "transport/net/tcp/socket_pair.h"

namespace tutti::test {

/// What the system says of the NICs.
class FakeSysfs {
 public:
  explicit FakeSysfs(const std::vector<FakeNic>& nics) {
    std::string name = (std::filesystem::temp_directory_path() / "tutti-verbs-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    for (const FakeNic& nic : nics) add(nic);
  }
  ~FakeSysfs() { std::filesystem::remove_all(folder_); }
  FakeSysfs(const FakeSysfs&) = delete;
  FakeSysfs& operator=(const FakeSysfs&) = delete;
  std::string folder() const { return folder_ / "class"; }
  std::string devices() const { return folder_ / "pci"; }

 private:
  void add(const FakeNic& nic) {
    const auto own = folder_ / "class" / nic.name;
    std::filesystem::create_directories(own);
    if (!nic.pci.empty()) {
      std::filesystem::create_directories(folder_ / "pci" / nic.pci);
      std::filesystem::create_symlink(folder_ / "pci" / nic.pci, own / "device");
    }
    for (std::size_t port = 0; port < nic.ports.size(); ++port) {
      const auto types = own / "ports" / std::to_string(port + 1) / "gid_attrs/types";
      std::filesystem::create_directories(types);
      for (std::size_t i = 0; i < nic.ports[port].gids.size(); ++i) {
        const int version = nic.ports[port].gids[i].roceVersion;
        if (version == 0) continue;
        std::ofstream(types / std::to_string(i)) << (version == 1 ? "IB/RoCE v1" : "RoCE v2") << "\n";
      }
    }
  }
  std::filesystem::path folder_;
};

/// A NIC of Ethernet with one port; `last`: of its address and its PCI bus.
inline FakeNic roceNic(const std::string& name, int last) {
  FakeNic nic{.name = name, .pci = "0000:" + std::to_string(10 + last) + ":00.0"};
  nic.guid = static_cast<std::uint64_t>(100 + last);
  nic.ports = {{.gids = {{"fe80::" + std::to_string(last), 1},
                         {"fe80::" + std::to_string(last), 2},
                         {"::ffff:10.0.0." + std::to_string(last), 1},
                         {"::ffff:10.0.0." + std::to_string(last), 2}}}};
  return nic;
}

/// The same of InfiniBand; `subnet`: the last digits of its prefix.
inline FakeNic infinibandNic(const std::string& name, int last, const std::string& subnet = "1") {
  FakeNic nic{.name = name, .pci = "0000:" + std::to_string(10 + last) + ":00.0"};
  nic.guid = static_cast<std::uint64_t>(100 + last);
  nic.ports = {{.ethernet = false,
                .lid = static_cast<std::uint16_t>(last),
                .gids = {{"fe80:0:0:" + subnet + "::" + std::to_string(last), 0}}}};
  return nic;
}

/// NICs a0, a1 of one host and b0, b1 of the other.
inline std::vector<FakeNic> fourNics() {
  return {roceNic("a0", 1), roceNic("a1", 2), roceNic("b0", 3), roceNic("b1", 4)};
}

inline Params verbsParams() {
  Params params = loopbackParams();
  params.ib.library = tuttiFakeVerbs()->file();
  params.ib.modifyRetrySleepMs = 1;
  return params;
}

/// One communicator's use of the network, with NICs whose names begin with `host`.
struct IbSide {
  IbSide(const std::string& host, const FakeSysfs& sysfs, Params params = verbsParams()) {
    params.ib.hca = host;
    source = net::ib::ibNetSource(params, sysfs.folder());
    auto opened = source->open(opening());
    EXPECT_TRUE(opened.ok());
    if (opened.ok()) net = std::move(opened).value();
  }
  /// The device of all its NICs, or of the first ones.
  int fused(int nics = 2) const {
    std::vector<int> all;
    for (int i = 0; i < nics; ++i) all.push_back(i);
    return net->makeVirtual(all).device;
  }
  std::unique_ptr<plugin::NetSource> source;
  std::unique_ptr<plugin::Net> net;
};

/// Memory that both ends may use.
struct IbBuffer {
  IbBuffer(plugin::Net& which, void* end, std::size_t bytes, unsigned seed = 0)
      : net(which),
        connection(end),
        data(seed != 0 ? pattern(bytes + 1, seed) : std::vector<unsigned char>(bytes + 1, 0xee)) {
    auto made = net.registerMemory(connection, data.data(), data.size(), plugin::PtrKind::Host);
    EXPECT_TRUE(made.ok());
    if (made.ok()) registration = made.value();
  }
  ~IbBuffer() {
    if (registration == nullptr) return;
    EXPECT_TRUE(net.deregisterMemory(connection, registration).ok());
  }
  IbBuffer(const IbBuffer&) = delete;
  IbBuffer& operator=(const IbBuffer&) = delete;
  plugin::NetBuffer place(std::size_t bytes, int tag = 0) {
    return {.data = data.data(), .bytes = bytes, .tag = tag, .registration = registration};
  }
  plugin::Net& net;
  void* connection;
  std::vector<unsigned char> data;
  void* registration = nullptr;
};

/// A connection from device `from` to device `to`; closes what is open.
struct IbPair {
  IbPair(plugin::Net& sending, int from, plugin::Net& receiving, int to) : sendNet(sending), recvNet(receiving) {
    auto listening = recvNet.listen(to, handle);
    EXPECT_TRUE(listening.ok());
    if (!listening.ok()) return;
    listener = listening.value();
    EXPECT_TRUE(until([&] { return !stepSend(from) || !stepRecv() || (sender != nullptr && receiver != nullptr); }));
    EXPECT_TRUE(sender != nullptr && receiver != nullptr);
    EXPECT_TRUE(recvNet.closeListen(std::exchange(listener, nullptr)).ok());
  }
  ~IbPair() {
    closeSend();
    closeRecv();
  }
  bool stepSend(int device) {
    if (sender != nullptr) return true;
    auto made = sendNet.connect(device, handle);
    if (made.ok()) sender = made.value();
    return made.ok();
  }
  bool stepRecv() {
    if (receiver != nullptr) return true;
    auto made = recvNet.accept(listener);
    if (made.ok()) receiver = made.value();
    return made.ok();
  }
  void closeSend() {
    if (void* one = std::exchange(sender, nullptr)) {
      EXPECT_TRUE(sendNet.closeSend(one).ok());
    }
  }
  void closeRecv() {
    if (void* one = std::exchange(receiver, nullptr)) {
      EXPECT_TRUE(recvNet.closeRecv(one).ok());
    }
  }

  void* recv(std::span<const plugin::NetBuffer> places) {
    auto request = recvNet.irecv(receiver, places);
    EXPECT_TRUE(request.ok());
    return request.ok() ? request.value() : nullptr;
  }
  void* recv(const plugin::NetBuffer& place) { return recv({&place, 1}); }
  /// Null where the receiver has not granted it.
  void* trySend(const plugin::NetBuffer& place) {
    auto request = sendNet.isend(sender, place);
    EXPECT_TRUE(request.ok());
    return request.ok() ? request.value() : nullptr;
  }
  void* send(const plugin::NetBuffer& place) {
    void* request = nullptr;
    EXPECT_TRUE(until([&] { return (request = trySend(place)) != nullptr; }));
    return request;
  }
  static bool done(plugin::Net& net, void* request, std::span<int> sizes = {}) {
    auto over = net.test(request, sizes);
    EXPECT_TRUE(over.ok());
    return !over.ok() || over.value();
  }
  void finishSend(void* request) {
    ASSERT_NE(request, nullptr);
    EXPECT_TRUE(until([&] { return done(sendNet, request); }));
  }
  std::vector<int> finishRecv(void* request, std::size_t count = 1) {
    std::vector<int> sizes(count, -1);
    EXPECT_TRUE(request != nullptr && until([&] { return done(recvNet, request, sizes); }));
    return sizes;
  }

  plugin::Net& sendNet;
  plugin::Net& recvNet;
  plugin::NetHandle handle{};
  void* listener = nullptr;
  void* sender = nullptr;
  void* receiver = nullptr;
};

/// NICs are plugged in before a test; after it nothing is open, and no NIC has met what it would not have done.
class VerbsTest : public ::testing::Test {
 protected:
  void plug(std::vector<FakeNic> nics) {
    tuttiFakeVerbs()->plug(nics);
    sysfs = std::make_unique<FakeSysfs>(nics);
  }
  void SetUp() override { plug(fourNics()); }
  void TearDown() override {
    tuttiFakeVerbs()->hold(false);
    EXPECT_EQ(tuttiFakeVerbs()->counts(), FakeCounts());
    EXPECT_EQ(tuttiFakeVerbs()->faults(), std::vector<std::string>());
  }
  std::unique_ptr<FakeSysfs> sysfs;
};

/// The connection that most tests need: from a0 to b0.
class IbPairTest : public VerbsTest {
 protected:
  void connect(const Params& params = verbsParams()) { connect(params, params); }
  void connect(const Params& sending, const Params& receiving, bool fusedSend = false, bool fusedRecv = false) {
    a = std::make_unique<IbSide>("a", *sysfs, sending);
    b = std::make_unique<IbSide>("b", *sysfs, receiving);
    pair = std::make_unique<IbPair>(*a->net, fusedSend ? a->fused() : 0, *b->net, fusedRecv ? b->fused() : 0);
  }
  void TearDown() override {
    in.clear();
    out.clear();
    pair.reset();
    a.reset();
    b.reset();
    VerbsTest::TearDown();
  }
  IbBuffer& outgoing(std::size_t bytes, unsigned seed = 1) {
    out.push_back(std::make_unique<IbBuffer>(*a->net, pair->sender, bytes, seed));
    return *out.back();
  }
  IbBuffer& incoming(std::size_t bytes) {
    in.push_back(std::make_unique<IbBuffer>(*b->net, pair->receiver, bytes));
    return *in.back();
  }
  /// One message, and a byte beyond that nobody may touch.
  void exchange(std::size_t bytes, unsigned seed) {
    IbBuffer& from = outgoing(bytes, seed);
    IbBuffer& to = incoming(bytes);
    void* const received = pair->recv(to.place(bytes));
    pair->finishSend(pair->send(from.place(bytes)));
    EXPECT_EQ(pair->finishRecv(received), std::vector<int>{static_cast<int>(bytes)});
    EXPECT_TRUE(std::equal(from.data.begin(), from.data.end() - 1, to.data.begin())) << bytes;
    EXPECT_EQ(to.data.back(), 0xee) << bytes;
    in.pop_back();
    out.pop_back();
  }
  std::unique_ptr<IbSide> a, b;
  std::unique_ptr<IbPair> pair;
  std::vector<std::unique_ptr<IbBuffer>> in, out;
};

}  // namespace tutti::test
