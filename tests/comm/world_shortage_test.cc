// Communicators of a process that runs out of host memory, at any of their steps. What the software GPU's libraries
// need they get: they have an operator new of their own.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "comm/world.h"
#include "support/short_memory.h"

namespace tutti::comm {
namespace {

constexpr int kRanks = 2;
constexpr std::size_t kCount = 20'000;

/// What a rank has before memory is short.
struct Seat {
  explicit Seat(int rank)
      : gpu(test::device(rank)),
        stream(gpu::Stream::create(gpu).value()),
        in(gpu, kCount, rank + 1),
        out(gpu, kCount, -1) {}
  const gpu::Device& gpu;
  gpu::Stream stream;
  test::Ints in;
  test::Ints out;
};

/// As applications wait: for the stream, or for an error.
ncclResult_t waitWatching(const Seat& seat, ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  while (state == ncclSuccess && seat.gpu.driver().cuStreamQuery(seat.stream.get()) == CUDA_ERROR_NOT_READY) {
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return state;
}

/// Whether the rank got its sums.
bool live(const Seat& seat, int rank, const ncclUniqueId& id) {
  ncclComm_t comm = nullptr;
  ncclResult_t result = ncclCommInitRank(&comm, kRanks, id, rank);
  if (result == ncclSuccess)
    result = ncclAllReduce(seat.in.at(), seat.out.at(), kCount, ncclInt32, ncclSum, comm, seat.stream.get());
  if (result == ncclSuccess) result = waitWatching(seat, comm);
  if (result == ncclSuccess) return ncclCommDestroy(comm) == ncclSuccess;
  if (comm != nullptr) ncclCommAbort(comm);
  return false;
}

class WorldShortage : public testing::Test {
 protected:
  WorldShortage() {
    for (int rank = 0; rank < kRanks; ++rank) {
      test::useDevice(rank);
      seats_.push_back(std::make_unique<Seat>(rank));
    }
  }

  /// How many ranks got their sums.
  int liveOnce() const {
    ncclUniqueId id{};
    if (ncclGetUniqueId(&id) != ncclSuccess) return 0;
    std::atomic<int> well{0};
    test::runRanks(kRanks, [&](int rank) {
      test::useDevice(rank);
      if (live(*seats_[static_cast<std::size_t>(rank)], rank, id)) ++well;
    });
    return well;
  }

 private:
  std::vector<std::unique_ptr<Seat>> seats_;
};

TEST_F(WorldShortage, AnyAllocationMayFail) {
  test::allowLog("");
  test::refuseOneByOne(
      20, std::chrono::seconds(20), [&] { liveOnce(); }, [&] { return liveOnce() == kRanks; });
}

}  // namespace
}  // namespace tutti::comm
