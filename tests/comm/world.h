// Ranks as threads on the software GPU, driven through the public API (compiled into the test, so that LogCapture sees
// what the library says).
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "gpu/context.h"
#include "gpu/driver.h"
#include "gpu/memory.h"
#include "gpu/memory_ledger.h"
#include "gpu/stream.h"
#include "nccl.h"
#include "support/log_capture.h"
#include "support/thread_ranks.h"

namespace tutti::test {

/// A device of the process; lives as long as the process.
inline const gpu::Device& device(int ordinal) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<gpu::Device>>& devices = *new std::vector<std::unique_ptr<gpu::Device>>(16);
  const std::lock_guard lock(mutex);
  std::unique_ptr<gpu::Device>& place = devices.at(static_cast<std::size_t>(ordinal));
  if (!place) place = gpu::Device::create(*gpu::loadDriver().value(), ordinal).value();
  return *place;
}

/// Makes a device current on the calling thread, for good, as cudaSetDevice does.
inline void useDevice(int ordinal) {
  device(ordinal).driver().cuCtxPushCurrent(device(ordinal).context());
}

/// Integers on a device.
class Ints {
 public:
  Ints(const gpu::Device& on, const std::vector<int>& values)
      : device_(on),
        buffer_(gpu::DeviceBuffer::create(on, values.size() * sizeof(int) + 16, "test").value()),
        count_(values.size()) {
    EXPECT_TRUE(gpu::copyToDevice(on, buffer_.address(), std::as_bytes(std::span(values))).ok());
  }
  Ints(const gpu::Device& on, std::size_t count, int value) : Ints(on, std::vector<int>(count, value)) {}
  int* at(std::size_t index = 0) const { return reinterpret_cast<int*>(buffer_.data()) + index; }
  std::vector<int> read() const {
    std::vector<int> values(count_);
    EXPECT_TRUE(gpu::copyToHost(device_, std::as_writable_bytes(std::span(values)), buffer_.address()).ok());
    return values;
  }

 private:
  const gpu::Device& device_;
  gpu::DeviceBuffer buffer_;
  std::size_t count_;
};

/// first, first + 1, …
inline std::vector<int> countUp(int first, std::size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// What one rank's thread has.
struct Member {
  int rank = 0;
  int size = 1;
  ncclComm_t comm = nullptr;
  const gpu::Device& gpu;
  gpu::Stream owner;
  CUstream stream() const { return owner.get(); }
  void sync() const { EXPECT_TRUE(gpu::waitStream(gpu, stream(), nullptr).ok()); }
};

inline ncclUniqueId newId() {
  ncclUniqueId id{};
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  return id;
}

/// Two ranks on one device must not free memory there between collectives: freeing waits for the other's kernel, which
/// may wait for this rank. So every rank has a device of its own unless a test asks otherwise. Runs `body` on one
/// thread per rank, rank r on device r modulo `devices`, each with a communicator that is destroyed afterwards unless
/// the body has set `comm` to null.
inline void withComm(int ranks, const std::function<void(Member&)>& body, int devices = 8) {
  const ncclUniqueId id = newId();
  runRanks(ranks, [&](int rank) {
    const int ordinal = rank % devices;
    useDevice(ordinal);
    Member member{rank, ranks, nullptr, device(ordinal), gpu::Stream::create(device(ordinal)).value()};
    ASSERT_EQ(ncclCommInitRank(&member.comm, ranks, id, rank), ncclSuccess);
    body(member);
    if (member.comm == nullptr) return;
    EXPECT_EQ(ncclCommDestroy(member.comm), ncclSuccess);
  });
}

/// Polls until `comm` is no longer in progress; its state.
inline ncclResult_t settle(ncclComm_t comm, std::chrono::seconds limit = std::chrono::seconds(20)) {
  const Deadline deadline = Deadline::in(limit);
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress && !deadline.expired()) {
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    std::this_thread::sleep_for(milliseconds(1));
  }
  return state;
}

/// Polls until `comm` reports an error; ncclSuccess if none came in time.
inline ncclResult_t awaitError(ncclComm_t comm, std::chrono::seconds limit = std::chrono::seconds(20)) {
  const Deadline deadline = Deadline::in(limit);
  ncclResult_t state = ncclSuccess;
  while ((state == ncclSuccess || state == ncclInProgress) && !deadline.expired()) {
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    std::this_thread::sleep_for(milliseconds(1));
  }
  return state;
}

}  // namespace tutti::test
