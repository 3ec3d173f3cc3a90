// A kernel that fails takes its device down for its process. In a program of its own: the device stays broken.
#include <atomic>
#include <thread>

#include "comm/graph.h"
#include "comm/world.h"
#include "device/simt/simt_host_abi.h"

namespace tutti::comm {
namespace {

using test::Ints;
using test::Member;

void trapEntry(simt::HostThread* self, const void*) {
  self->ops->trap(self, "on purpose");
}

/// Breaks the device whose context is current, as an illegal access of a kernel does.
void failAKernel(const gpu::Device& gpu, CUstream stream) {
  struct Nothing {
    int unused = 0;
  };
  static constexpr simt::HostKernel kKernel{"trap", trapEntry, sizeof(Nothing), 0, 32};
  static constexpr simt::HostKernelTable kTable{simt::kHostAbiVersion, 1, &kKernel};
  void* module = nullptr;
  ASSERT_EQ(gpu.driver().softgpuRegisterKernels(&kTable, &module), CUDA_SUCCESS);
  CUfunction function = nullptr;
  ASSERT_EQ(gpu.driver().cuModuleGetFunction(&function, static_cast<CUmodule>(module), "trap"), CUDA_SUCCESS);
  Nothing nothing;
  void* params[] = {&nothing};
  ASSERT_EQ(gpu.driver().cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, params, nullptr), CUDA_SUCCESS);
}

TEST(WorldKernelFailure, IsNoticedAndToldToEveryRankThatWaits) {
  test::allowLog("a kernel failed on the device");
  test::allowLog("the device of the kernels has failed");
  test::allowLog("Cuda failure");
  const ncclUniqueId id = test::newId();
  const auto start = SteadyClock::now();
  std::atomic<int> failed{0};
  test::runRanks(3, [&](int rank) {
    test::useDevice(rank);
    const gpu::Device& gpu = test::device(rank);
    // Given up with the device, like everything on it.
    auto* m = new test::Member{rank, 3, nullptr, gpu, gpu::Stream::create(gpu).value()};
    auto* data = new test::Ints(gpu, 1000, 1);
    ASSERT_EQ(ncclCommInitRank(&m->comm, 3, id, rank), ncclSuccess);
    // The first call connects, and waits for everybody.
    ASSERT_EQ(ncclAllReduce(data->at(), data->at(), 1000, ncclInt32, ncclSum, m->comm, m->stream()), ncclSuccess);
    m->sync();
    // Rank 0 stays away: the kernels of 1 and 2 wait for it.
    if (rank != 0) {
      ASSERT_EQ(ncclAllReduce(data->at(), data->at(), 1000, ncclInt32, ncclSum, m->comm, m->stream()), ncclSuccess);
    }
    if (rank == 1) {
      const gpu::Stream other = gpu::Stream::create(gpu).value();
      failAKernel(gpu, other.get());
    }
    if (rank != 0) {
      EXPECT_EQ(test::awaitError(m->comm), rank == 1 ? ncclUnhandledCudaError : ncclRemoteError);
      ++failed;
    }
    while (failed < 2) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_EQ(ncclCommAbort(m->comm), ncclSuccess);
  });
  EXPECT_LT(secondsSince(start), 10.0);
  const std::string log = test::capturedText();
  EXPECT_NE(log.find("rank 1 of 3 on host"), std::string::npos);
  EXPECT_NE(log.find("operation AllReduce (kernel tutti_AllReduce_"), std::string::npos);
}

TEST(WorldKernelFailure, AGroupThatIsLaunchedHalfWayFailsOnAllItsCommunicators) {
  test::allowLog("Cuda failure");
  test::allowLog("a kernel failed on the device");
  test::allowLog("the device of the kernels has failed");
  constexpr int kRanks = 3;
  constexpr int kFirst = 4;  // devices that are sound as yet
  std::vector<test::Member*> members;
  std::vector<test::Ints*> data;
  const ncclUniqueId id = test::newId();
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < kRanks; ++rank) {
    test::useDevice(kFirst + rank);
    const gpu::Device& gpu = test::device(kFirst + rank);
    members.push_back(new test::Member{rank, kRanks, nullptr, gpu, gpu::Stream::create(gpu).value()});
    data.push_back(new test::Ints(gpu, 1000, 1));
    ASSERT_EQ(ncclCommInitRank(&members.back()->comm, kRanks, id, rank), ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  const auto allReduce = [&] {
    ncclGroupStart();
    for (std::size_t i = 0; i < kRanks; ++i) {
      EXPECT_EQ(
          ncclAllReduce(data[i]->at(), data[i]->at(), 1000, ncclInt32, ncclSum, members[i]->comm, members[i]->stream()),
          ncclSuccess);
    }
    return ncclGroupEnd();
  };
  ASSERT_EQ(allReduce(), ncclSuccess);
  for (const test::Member* m : members) m->sync();

  const auto start = SteadyClock::now();
  test::useDevice(kFirst + 1);
  const gpu::Stream other = gpu::Stream::create(members[1]->gpu).value();
  failAKernel(members[1]->gpu, other.get());
  EXPECT_FALSE(gpu::waitStream(members[1]->gpu, other.get(), nullptr).ok());
  // The first is launched, the second cannot be, and the third is not any more.
  EXPECT_EQ(allReduce(), ncclUnhandledCudaError);
  const std::string said = ncclGetLastError(nullptr);
  EXPECT_NE(said.find("device 5"), std::string::npos) << said;
  for (const test::Member* m : members) {
    // Whether it hears of the others' failure or of its own first.
    const ncclResult_t error = test::awaitError(m->comm);
    EXPECT_TRUE(error == ncclUnhandledCudaError || error == ncclRemoteError) << m->rank << ": " << error;
    EXPECT_NE(ncclAllReduce(nullptr, nullptr, 0, ncclInt32, ncclSum, m->comm, m->stream()), ncclSuccess);
  }
  for (const test::Member* m : members) EXPECT_EQ(ncclCommAbort(m->comm), ncclSuccess);
  for (const int sound : {0, 2}) members[static_cast<std::size_t>(sound)]->sync();
  EXPECT_LT(secondsSince(start), 15.0);
}

}  // namespace
}  // namespace tutti::comm
