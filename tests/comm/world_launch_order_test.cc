// Communicators whose kernels begin in the order of the calls (launchOrderImplicit), where devices have little room.
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "comm/world.h"
#include "gpu/driver_calls.h"
#include "gpu/stream_gate.h"

namespace tutti::comm {
namespace {

constexpr std::size_t kCount = 1 << 12;

ncclComm_t join(int rank, int size, const ncclUniqueId& id, int order) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.launchOrderImplicit = order;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, size, id, rank, &config), ncclSuccess);
  return comm;
}

/// A rank on a device of its own, with a stream and a buffer for each of two communicators.
struct Party {
  explicit Party(int place)
      : gpu(test::device(place)),
        streams{gpu::Stream::create(gpu).value(), gpu::Stream::create(gpu).value()},
        data{test::Ints(gpu, kCount, place + 1), test::Ints(gpu, kCount, place + 1)} {}
  void allReduce(std::size_t which, ncclComm_t comm) const {
    EXPECT_EQ(ncclAllReduce(data[which].at(), data[which].at(), kCount, ncclInt32, ncclSum, comm, streams[which].get()),
              ncclSuccess);
  }
  void sync(std::size_t which) const { EXPECT_TRUE(gpu::waitStream(gpu, streams[which].get(), nullptr).ok()); }

  const gpu::Device& gpu;
  gpu::Stream streams[2];
  test::Ints data[2];
};

/// `body` on a thread for each of two ranks of two communicators, whose connections were made by a first call.
void withTwo(const std::function<void(int rank, const Party&, const std::vector<ncclComm_t>&)>& body) {
  const std::vector<ncclUniqueId> ids{test::newId(), test::newId()};
  test::runRanks(2, [&](int rank) {
    test::useDevice(rank);
    std::vector<ncclComm_t> comms;
    for (const ncclUniqueId& id : ids) comms.push_back(join(rank, 2, id, 1));
    const Party party(rank);
    for (std::size_t i = 0; i < comms.size(); ++i) {
      party.allReduce(i, comms[i]);
      party.sync(i);
    }
    body(rank, party, comms);
    for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(LaunchOrder, KernelsThatFillTheirDevicesBeginInTheOrderOfTheCalls) {
  withTwo([](int rank, const Party& party, const std::vector<ncclComm_t>& comms) {
    test::StreamGate gate;
    // The second rank's first kernel comes late, and its second one would take the only room of the device.
    if (rank == 1) gate.hold(party.gpu.driver(), party.streams[0].get());
    for (std::size_t i = 0; i < comms.size(); ++i) party.allReduce(i, comms[i]);
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gate.open();
    for (std::size_t i = 0; i < comms.size(); ++i) {
      party.sync(i);
      EXPECT_EQ(party.data[i].read(), std::vector<int>(kCount, 6));
    }
  });
}

TEST(LaunchOrder, ReplaysOfCapturedCallsAreInItAsWell) {
  withTwo([](int rank, const Party& party, const std::vector<ncclComm_t>& comms) {
    test::StreamGate gate;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    const CUstream first = party.streams[0].get();
    ASSERT_EQ(DRIVER_CALL(cuStreamBeginCapture)(first, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    party.allReduce(0, comms[0]);
    ASSERT_EQ(DRIVER_CALL(cuStreamEndCapture)(first, &graph), CUDA_SUCCESS);
    ASSERT_EQ(DRIVER_CALL(cuGraphInstantiate)(&exec, graph, 0), CUDA_SUCCESS);
    if (rank == 1) gate.hold(party.gpu.driver(), first);
    ASSERT_EQ(DRIVER_CALL(cuGraphLaunch)(exec, first), CUDA_SUCCESS);
    party.allReduce(1, comms[1]);
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gate.open();
    for (std::size_t i = 0; i < comms.size(); ++i) {
      party.sync(i);
      EXPECT_EQ(party.data[i].read(), std::vector<int>(kCount, 6));
    }
    EXPECT_EQ(DRIVER_CALL(cuGraphExecDestroy)(exec), CUDA_SUCCESS);
    EXPECT_EQ(DRIVER_CALL(cuGraphDestroy)(graph), CUDA_SUCCESS);
  });
}

TEST(LaunchBeside, AKernelWaitsForTheBeginOfTheOneBeforeItAndNotForItsEnd) {
  const ncclUniqueId pair = test::newId();
  const ncclUniqueId other = test::newId();
  std::atomic<bool> over{false};
  test::runRanks(3, [&](int rank) {
    test::useDevice(rank);
    const ncclComm_t first = rank == 2 ? nullptr : join(rank, 2, pair, 1);
    const ncclComm_t second = rank == 1 ? nullptr : join(rank / 2, 2, other, 1);
    const Party party(rank);
    for (const int round : {0, 1}) {
      // Only once the others are through does the second rank call what the first one's first kernel waits for.
      while (round == 1 && rank == 1 && !over.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (first != nullptr) party.allReduce(0, first);
      if (round == 0) party.sync(0);
      if (second != nullptr) party.allReduce(1, second);
      party.sync(1);
      if (round == 1 && rank == 0) over.store(true);
      party.sync(0);
    }
    for (ncclComm_t comm : {first, second}) {
      if (comm != nullptr) {
        EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
      }
    }
  });
}

TEST(LaunchBeside, RanksOfOneDeviceHaveNoSuchOrderAndAreToldSo) {
  const ncclUniqueId id = test::newId();
  test::runRanks(2, [&](int rank) {
    test::useDevice(0);
    const ncclComm_t comm = join(rank, 2, id, 1);
    const Party party(0);
    party.allReduce(0, comm);
    party.sync(0);
    EXPECT_EQ(party.data[0].read(), std::vector<int>(kCount, 2));
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
  EXPECT_EQ(test::countOf(test::capturedText(),
                          "launchOrderImplicit has no effect: other ranks of the process are on "
                          "device 0"),
            2u);
}

}  // namespace
}  // namespace tutti::comm
