// Ranks joined by the network over verbs alone, whose NICs are in software (transport/net/ib/fake_verbs.h) and may
// reach the software GPU's memory, as SOFTGPU_GDR says: "dmabuf", "peer" or "none". Everything received is flushed.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "comm/world.h"
#include "transport/net/ib/fake_verbs.h"

namespace tutti::comm {
namespace {

using test::Ints;
using test::Member;

constexpr std::size_t kCount = 300001;

std::string way() {
  const char* const set = std::getenv("SOFTGPU_GDR");
  return set == nullptr ? "none" : set;
}

class WorldVerbs : public ::testing::Test {
 protected:
  /// The process opens its NICs once.
  static void SetUpTestSuite() {
    std::vector<test::FakeNic> nics;
    for (int number = 0; number < 2; ++number) {
      test::FakeNic nic{.name = "ib" + std::to_string(number), .dmaBufs = true};
      nic.guid = static_cast<std::uint64_t>(100 + number);
      nic.ports = {{.ethernet = false,
                    .lid = static_cast<std::uint16_t>(number + 1),
                    .gids = {{"fe80:0:0:1::" + std::to_string(number + 1), 0}}}};
      nics.push_back(std::move(nic));
    }
    tuttiFakeVerbs()->plug(std::move(nics));
  }
  void TearDown() override { EXPECT_EQ(verbs().faults(), std::vector<std::string>()); }

  static test::FakeVerbs& verbs() { return *tuttiFakeVerbs(); }
  /// Lines of connections, how many of which say what was taken, or are of all.
  static std::size_t connections(const std::string& end) {
    const std::vector<std::string> lines = test::capturedLog();
    return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(" via NET/IB/") != std::string::npos && line.find(end) != std::string::npos;
    }));
  }
  /// Regions that cover the bytes, and were registered by that call.
  static std::size_t regionsOf(const void* data, std::size_t bytes, std::string_view call) {
    const auto first = reinterpret_cast<std::uintptr_t>(data);
    std::size_t count = 0;
    for (const char* nic : {"ib0", "ib1"}) {
      for (const test::FakeRegion& region : verbs().regions(nic)) {
        const bool covers = region.address <= first && first + bytes <= region.address + region.bytes;
        if (covers && region.call.starts_with(call)) ++count;
      }
    }
    return count;
  }
  static std::size_t regionsBy(std::string_view call) {
    std::size_t count = 0;
    for (const char* nic : {"ib0", "ib1"}) {
      for (const test::FakeRegion& region : verbs().regions(nic)) count += region.call == call ? 1 : 0;
    }
    return count;
  }
  static std::size_t flushes() {
    const std::vector<test::FakeWork> work = verbs().work();
    return static_cast<std::size_t>(std::count_if(
        work.begin(), work.end(), [](const test::FakeWork& one) { return one.opcode == IBV_WR_RDMA_READ; }));
  }
};

void reduce(const Member& m, const Ints& in, const Ints& out) {
  EXPECT_EQ(ncclAllReduce(in.at(), out.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
  m.sync();
  EXPECT_EQ(out.read(), std::vector<int>(kCount, m.size * (m.size + 1) / 2));
}

TEST_F(WorldVerbs, CarriesCollectivesThroughTheMemoryThatIsMeant) {
  const std::size_t flushed = flushes();
  test::withComm(3, [&](Member& m) {
    const Ints in(m.gpu, kCount, m.rank + 1);
    const Ints out(m.gpu, kCount, -1);
    for (int turn = 0; turn < 3; ++turn) reduce(m, in, out);
    if (m.rank != 0) return;
    EXPECT_EQ(regionsBy("ibv_reg_dmabuf_mr") > 0, way() == "dmabuf");
  });
  EXPECT_GT(connections(""), 0u);
  EXPECT_EQ(connections("/GDRDMA"), way() == "none" ? 0u : connections(""));
  EXPECT_EQ(flushes() > flushed, way() != "none") << "what came into host memory needs none";
}

TEST_F(WorldVerbs, GivesMemoryByItsAddressWhereEveryDmaBufIsRefused) {
  if (way() != "dmabuf") GTEST_SKIP() << "there are no dma-bufs";
  verbs().failCall("ibv_reg_dmabuf_mr", 1, EFAULT, 1000);
  test::withComm(3, [&](Member& m) {
    const Ints in(m.gpu, kCount, m.rank + 1);
    const Ints out(m.gpu, kCount, -1);
    for (int turn = 0; turn < 3; ++turn) reduce(m, in, out);
    if (m.rank != 0) return;
    EXPECT_EQ(regionsBy("ibv_reg_dmabuf_mr"), 0u);
  });
  verbs().failCall("ibv_reg_dmabuf_mr", 1, 0, 0);
  EXPECT_GT(connections(""), 0u);
  EXPECT_EQ(connections("/GDRDMA"), connections(""));
  const std::string log = test::capturedText();
  EXPECT_NE(log.find("by their address, for as a dma-buf they cannot be: NET/IB : Call to ibv_reg_dmabuf_mr on ib"),
            std::string::npos);
}

/// To the next rank, from the one before.
void passOn(const Member& m, const Ints& in, const Ints& out) {
  const int before = (m.rank + m.size - 1) % m.size;
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclSend(in.at(), kCount, ncclInt32, (m.rank + 1) % m.size, m.comm, m.stream()), ncclSuccess);
  EXPECT_EQ(ncclRecv(out.at(), kCount, ncclInt32, before, m.comm, m.stream()), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  m.sync();
  EXPECT_EQ(out.read(), std::vector<int>(kCount, before + 10));
}

TEST_F(WorldVerbs, CarriesMessagesAsWell) {
  test::withComm(3, [](Member& m) {
    const Ints in(m.gpu, kCount, m.rank + 10);
    const Ints out(m.gpu, kCount, -1);
    for (int turn = 0; turn < 3; ++turn) passOn(m, in, out);
  });
  EXPECT_GT(connections(""), 0u);
  EXPECT_EQ(connections("/GDRDMA"), way() == "none" ? 0u : connections(""));
}

TEST_F(WorldVerbs, SendsFromRegisteredMemoryWhereItLies) {
  test::withComm(2, [](Member& m) {
    const Ints in(m.gpu, kCount, m.rank + 10);
    const Ints out(m.gpu, kCount, -1);
    void* handle = nullptr;
    EXPECT_EQ(ncclCommRegister(m.comm, in.at(), kCount * sizeof(int), &handle), ncclSuccess);
    passOn(m, in, out);
    EXPECT_EQ(regionsOf(in.at(), kCount * sizeof(int), "ibv_reg_mr") > 0, way() != "dmabuf")
        << "memory that is given away as dma-bufs lies outside of the device's window, and is not offered";
    EXPECT_EQ(ncclCommDeregister(m.comm, handle), ncclSuccess);
  });
}

}  // namespace
}  // namespace tutti::comm
