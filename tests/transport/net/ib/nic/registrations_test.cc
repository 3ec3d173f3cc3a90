#include "transport/net/ib/nic/registrations.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>

#include "base/settings/params.h"
#include "support/log_capture.h"
#include "transport/net/ib/ib_pair.h"
#include "transport/net/ib/nic/devices.h"
#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/options.h"
#include "transport/net/ib/queue_pairs.h"

namespace tutti::net::ib {
namespace {

using namespace test;

bool logged(std::string_view part) {
  return capturedText().find(part) != std::string::npos;
}

class RegistrationsTest : public VerbsTest {
 protected:
  void SetUp() override {
    auto all = fourNics();
    for (FakeNic& nic : all) nic.dmaBufs = true;
    plug(all);
    std::string why;
    const Verbs* const verbs = openVerbs(tuttiFakeVerbs()->file(), &why);
    ASSERT_NE(verbs, nullptr) << why;
    IbOptions options;
    options.relaxedOrdering = true;
    auto found = searchIbPorts(*verbs, options, sysfs->folder());
    ports = std::move(found).value().ports;
    memory = static_cast<char*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  void TearDown() override {
    ports.clear();
    ::munmap(memory, kBytes);
    VerbsTest::TearDown();
  }
  Registrations& own() { return ports[0].nic->registrations(); }
  ibv_mr* acquire(const MemoryRange& range) {
    auto region = own().acquire(range);
    EXPECT_TRUE(region.ok());
    return region.ok() ? region.value() : nullptr;
  }
  static constexpr std::size_t kBytes = 64 << 10;
  std::vector<IbPort> ports;
  char* memory = nullptr;
};

TEST_F(RegistrationsTest, RoundsToWholePages) {
  ibv_mr* const region = acquire({.address = memory + 4097, .bytes = 4096});
  EXPECT_EQ(region->addr, memory + 4096);
  EXPECT_EQ(region->length, 8192u);
  EXPECT_EQ(own().bytes(), 8192u);
  EXPECT_TRUE(own().release(region).ok());
}

TEST_F(RegistrationsTest, RegistersARangeOnceForAllItsUsers) {
  ibv_mr* const first = acquire({.address = memory, .bytes = 100});
  ibv_mr* const second = acquire({.address = memory + 200, .bytes = 300});
  EXPECT_EQ(first, second) << "the same page";
  EXPECT_EQ(tuttiFakeVerbs()->counts().regions, 1);
  EXPECT_TRUE(own().release(first).ok());
  EXPECT_EQ(tuttiFakeVerbs()->counts().regions, 1) << "it has a user yet";
  EXPECT_TRUE(own().release(second).ok());
  EXPECT_EQ(tuttiFakeVerbs()->counts().regions, 0);
  EXPECT_EQ(own().count(), 0u);
  EXPECT_EQ(own().bytes(), 0u);
}

TEST_F(RegistrationsTest, FindsRangesWhateverWasReleasedBetween) {
  std::vector<ibv_mr*> all;
  for (std::size_t i = 0; i < 8; ++i) all.push_back(acquire({.address = memory + i * 4096, .bytes = 1}));
  EXPECT_TRUE(own().release(all[2]).ok());
  EXPECT_TRUE(own().release(all[5]).ok());
  for (const std::size_t i : {0u, 1u, 3u, 4u, 6u, 7u}) {
    EXPECT_EQ(acquire({.address = memory + i * 4096, .bytes = 1}), all[i]) << i;
    EXPECT_TRUE(own().release(all[i]).ok());
    EXPECT_TRUE(own().release(all[i]).ok());
  }
  EXPECT_EQ(own().count(), 0u);
}

TEST_F(RegistrationsTest, GivesDataAnyOrderAndControlMemoryTheStrictOne) {
  ibv_mr* const data = acquire({.address = memory, .bytes = 1});
  ibv_mr* const control = acquire({.address = memory, .bytes = 1, .strictOrder = true});
  EXPECT_NE(data, control);
  std::string calls;
  for (const FakeRegion& region : tuttiFakeVerbs()->regions("a0")) {
    const bool relaxed = (region.access & IBV_ACCESS_RELAXED_ORDERING) != 0;
    calls += region.call + (relaxed ? "+relaxed " : " ");
    EXPECT_EQ(
        region.access & ~IBV_ACCESS_RELAXED_ORDERING,
        unsigned{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC});
  }
  EXPECT_EQ(calls, "ibv_reg_mr_iova2+relaxed ibv_reg_mr ");
  EXPECT_TRUE(own().release(data).ok());
  EXPECT_TRUE(own().release(control).ok());
}

TEST_F(RegistrationsTest, SaysTheLimitThatStandsInTheWay) {
  expectLog("Call to ibv_reg_mr on a0 failed with error Cannot allocate memory");
  tuttiFakeVerbs()->failCall("ibv_reg_mr_iova2", 1, ENOMEM);
  EXPECT_EQ(own().acquire({.address = memory, .bytes = 4096}).status().code(), ncclSystemError);
  EXPECT_TRUE(logged("RLIMIT_MEMLOCK"));
  EXPECT_EQ(own().count(), 0u);
  ibv_mr* const again = acquire({.address = memory, .bytes = 4096});
  EXPECT_TRUE(own().release(again).ok());
}

TEST_F(RegistrationsTest, SpeaksOfTheLimitWhereItMayBeTheCause) {
  EXPECT_EQ(memlockRemedy(EINVAL, 1, 2), "");
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  const std::string text = memlockRemedy(ENOMEM, 4711, 815);
  EXPECT_NE(text.find("4711"), std::string::npos);
  EXPECT_NE(text.find("815"), std::string::npos);
  const bool unlimited = limit.rlim_cur == RLIM_INFINITY;
  EXPECT_EQ(text.find("unlimited, so this is a limit of the NIC") != std::string::npos, unlimited) << text;
}

TEST_F(RegistrationsTest, NamesWhatIsNotRegistered) {
  expectLog("could not find mr");
  ibv_mr strange{};
  EXPECT_EQ(own().release(&strange).code(), ncclInternalError);
}

TEST_F(RegistrationsTest, RegistersTheMemoryBehindADescriptor) {
  const Fd file(::memfd_create("gpu", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), kBytes), 0);
  ibv_mr* const one = acquire({.address = memory, .bytes = 4096, .fd = file.get(), .offset = 8192});
  ibv_mr* const same = acquire({.address = memory, .bytes = 4096, .fd = file.get(), .offset = 8192});
  ibv_mr* const other = acquire({.address = memory, .bytes = 4096, .fd = file.get(), .offset = 4096});
  EXPECT_EQ(one, same);
  EXPECT_NE(one, other) << "another part of it";
  EXPECT_EQ(tuttiFakeVerbs()->regions("a0").at(0).call, "ibv_reg_dmabuf_mr");
  for (ibv_mr* region : {one, same, other}) EXPECT_TRUE(own().release(region).ok());
}

TEST_F(RegistrationsTest, TellsDescriptorsOfOneAddressApart) {
  const Fd first(::memfd_create("gpu", MFD_CLOEXEC));
  const Fd second(::memfd_create("gpu", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(first.get(), kBytes), 0);
  ASSERT_EQ(::ftruncate(second.get(), kBytes), 0);
  ibv_mr* const one = acquire({.address = memory, .bytes = 4096, .fd = first.get()});
  ibv_mr* const other = acquire({.address = memory, .bytes = 4096, .fd = second.get()});
  EXPECT_NE(one, other);
  EXPECT_TRUE(own().release(one).ok());
  EXPECT_TRUE(own().release(other).ok());
}

TEST_F(RegistrationsTest, NamesADescriptorThatIsNone) {
  expectLog("of a dma-buf is none");
  EXPECT_EQ(own().acquire({.address = memory, .bytes = 4096, .fd = 9999}).status().code(), ncclSystemError);
}

TEST_F(RegistrationsTest, SaysWhichCallADmaBufFailedIn) {
  expectLog("Call to ibv_reg_dmabuf_mr on a0 failed with error");
  const Fd file(::memfd_create("gpu", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  EXPECT_EQ(own().acquire({.address = memory, .bytes = 8192, .fd = file.get()}).status().code(), ncclSystemError);
}

TEST_F(RegistrationsTest, RefuseARegionThatIsShorterThanWhatWasAskedFor) {
  ports.clear();
  auto all = fourNics();
  all[0].registersLess = 1;
  plug(all);
  std::string why;
  auto found = searchIbPorts(*openVerbs(tuttiFakeVerbs()->file(), &why), {}, sysfs->folder());
  ports = std::move(found).value().ports;
  expectLog("a0 has registered 8191 of the 8192 bytes at");
  EXPECT_EQ(own().acquire({.address = memory, .bytes = 8192}).status().code(), ncclSystemError);
  EXPECT_TRUE(logged("NCCL_IB_HCA=^a0"));
  EXPECT_EQ(own().count(), 0u);
  EXPECT_EQ(tuttiFakeVerbs()->counts().regions, 0);
}

TEST_F(RegistrationsTest, LeaveNothingOfMemoryThatTheSecondPortRefuses) {
  expectLog("Call to ibv_reg_mr on a1 failed");
  const IbPort* const both[] = {&ports[0], &ports[1]};
  tuttiFakeVerbs()->failCall("ibv_reg_mr", 2, ENOMEM);
  EXPECT_FALSE(EndMemory::create(both, 4096).ok());
  EXPECT_EQ(tuttiFakeVerbs()->counts().regions, 0);
}

TEST_F(RegistrationsTest, GiveUpWhatIsLeftWithTheirNic) {
  acquire({.address = memory, .bytes = 4096});
  EXPECT_EQ(tuttiFakeVerbs()->counts().regions, 1);
}

/// As the rest of the page, memory in front of what is registered is read through the region where it belongs.
TEST_F(RegistrationsTest, PutsADescriptorsMemoryWhereItBelongsWithinItsPage) {
  const Fd file(::memfd_create("gpu", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), kBytes), 0);
  ibv_mr* const region = acquire({.address = memory + 256, .bytes = 100, .fd = file.get(), .offset = 4096 + 256});
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->addr, memory);
  EXPECT_TRUE(own().release(region).ok());
}

class IbRegistrationTest : public IbPairTest {};

TEST_F(IbRegistrationTest, LeavesNothingOfMemoryThatTheSecondPortRefuses) {
  allowLog("Call to ibv_reg_mr_iova2 on a1 failed");
  allowLog("Call to ibv_reg_mr on a1 failed");
  connect(verbsParams(), verbsParams(), true, false);
  const int before = tuttiFakeVerbs()->counts().regions;
  std::vector<char> data(100000);
  tuttiFakeVerbs()->failCall("ibv_reg_mr_iova2", 2, ENOMEM);
  EXPECT_FALSE(a->net->registerMemory(pair->sender, data.data(), data.size(), plugin::PtrKind::Host).ok());
  EXPECT_EQ(tuttiFakeVerbs()->counts().regions, before);
}

TEST_F(IbRegistrationTest, IsSharedByTheConnectionsOfTheProcess) {
  connect();
  IbPair another(*a->net, 0, *b->net, 0);
  const int before = tuttiFakeVerbs()->counts().regions;
  std::vector<char> data(100000);
  void* const one = a->net->registerMemory(pair->sender, data.data(), data.size(), plugin::PtrKind::Host).value();
  void* const two = a->net->registerMemory(another.sender, data.data(), data.size(), plugin::PtrKind::Host).value();
  EXPECT_EQ(tuttiFakeVerbs()->counts().regions, before + 1);
  EXPECT_TRUE(a->net->deregisterMemory(pair->sender, one).ok());
  EXPECT_TRUE(a->net->deregisterMemory(another.sender, two).ok());
  EXPECT_EQ(tuttiFakeVerbs()->counts().regions, before);
}

}  // namespace
}  // namespace tutti::net::ib
