#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "softgpu/cuda_fixture.h"

namespace tutti::softgpu::test {
namespace {

class Streams : public CudaTest {};

TEST_F(Streams, WorkRunsInOrder) {
  std::uint32_t* data = words();
  EXPECT_CU(cuMemsetD32Async(address(data), 5, 64, stream_));
  EXPECT_CU(launch("Add", 1, 64, stream_, {data, nullptr, 0, 3}));
  EXPECT_CU(cuMemcpyDtoDAsync(address(data + 64), address(data), 256, stream_));
  std::uint32_t result[64] = {};
  EXPECT_CU(cuMemcpyDtoHAsync(result, address(data + 64), 256, stream_));
  EXPECT_EQ(result[63], 8u);
}

TEST_F(Streams, SmallCopiesTakeWordsThatOthersCountInMeanwhile) {
  auto* counters = reinterpret_cast<std::uint64_t*>(words());
  std::atomic<bool> stop{false};
  std::thread counting([&] {
    for (std::uint64_t n = 1; !stop.load(); ++n) {
      for (int i : {0, 16}) __atomic_store_n(counters + i, n << 32 | n, __ATOMIC_RELEASE);
    }
  });
  std::uint64_t seen[17] = {};
  for (int round = 0; round < 500; ++round) {
    EXPECT_CU(cuMemcpyDtoHAsync(seen, address(counters), sizeof(seen), stream_));
    EXPECT_CU(cuStreamSynchronize(stream_));
    for (int i : {0, 16}) EXPECT_EQ(seen[i] >> 32, seen[i] & 0xffffffffu);
  }
  stop = true;
  counting.join();
}

TEST_F(Streams, BlockingStreamsWaitForTheLegacyStream) {
  std::uint32_t* data = words();
  CUstream blocking = nullptr;
  EXPECT_CU(cuStreamCreate(&blocking, 0));
  EXPECT_CU(launch("Wait", 1, 1, nullptr, {data + 64, data, 0, 1}));
  EXPECT_CU(launch("Write", 1, 1, blocking, {data + 128, nullptr, 0, 9}));
  EXPECT_CU_ERROR(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
  EXPECT_CU(launch("Write", 1, 1, stream_, {data, nullptr, 0, 1}));
  EXPECT_CU(cuStreamSynchronize(blocking));
  EXPECT_EQ(data[64], 1u);
  EXPECT_EQ(data[128], 9u);
  EXPECT_CU(cuStreamDestroy(blocking));
}

TEST_F(Streams, EventsOrderDevices) {
  std::uint32_t* data = words();
  CUevent event = nullptr;
  EXPECT_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  EXPECT_CU(cuEventQuery(event));
  EXPECT_CU(launch("Wait", 1, 1, stream_, {data + 64, data, 0, 4}));
  EXPECT_CU(cuEventRecord(event, stream_));
  EXPECT_CU_ERROR(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  EXPECT_CU(cuCtxSetCurrent(contexts_[1]));
  CUstream other = nullptr;
  EXPECT_CU(cuStreamCreate(&other, 0));
  EXPECT_CU(cuStreamWaitEvent(other, event, 0));
  EXPECT_CU(cuMemcpyAsync(address(data + 128), address(data + 64), 4, other));
  EXPECT_EQ(data[128], 0u);
  std::atomic_ref<std::uint32_t>(data[0]).store(4);
  EXPECT_CU(cuStreamSynchronize(other));
  EXPECT_EQ(data[128], 4u);
  EXPECT_CU(cuEventSynchronize(event));
  EXPECT_CU(cuEventDestroy(event));
  EXPECT_CU(cuStreamDestroy(other));
  EXPECT_CU(cuCtxSetCurrent(contexts_[0]));
}

/// Threads that keep every processor busy, and set a flag to what they were asked for some yields later.
class BusyThreads {
 public:
  explicit BusyThreads(std::uint32_t* flag) : flag_(flag) {
    const unsigned enough = std::min(std::thread::hardware_concurrency() + 1, 8u);
    for (unsigned i = 0; i < enough; ++i) threads_.emplace_back([this] { run(); });
  }
  ~BusyThreads() {
    stop_.store(true);
    for (std::thread& thread : threads_) thread.join();
  }
  void ask(std::uint32_t value) { asked_.store(value); }

 private:
  void run() {
    for (std::uint32_t i = 0; !stop_.load(); ++i) {
      if (i % 20 == 0) std::atomic_ref<std::uint32_t>(*flag_).store(asked_.load());
      ::sched_yield();
    }
  }
  std::uint32_t* flag_;
  std::atomic<std::uint32_t> asked_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

TEST_F(Streams, WaitingAmongBusyThreadsKeepsTheProcessorsAThreadMayUse) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  std::uint32_t* data = words();
  {
    BusyThreads busy(data);
    for (std::uint32_t round = 1; round <= 2000; ++round) {
      EXPECT_CU(launch("Wait", 1, 1, stream_, {data + 64, data, 0, round}));
      busy.ask(round);
      EXPECT_CU(cuStreamSynchronize(stream_));
    }
  }
  cpu_set_t after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST_F(Streams, TimingEventsMeasure) {
  CUevent events[2] = {};
  for (CUevent& event : events) {
    EXPECT_CU(cuEventCreate(&event, 0));
    EXPECT_CU(cuEventRecord(event, stream_));
  }
  EXPECT_CU(cuEventSynchronize(events[1]));
  float milliseconds = -1;
  EXPECT_CU(cuEventElapsedTime(&milliseconds, events[0], events[1]));
  EXPECT_GE(milliseconds, 0.0f);
  for (CUevent event : events) EXPECT_CU(cuEventDestroy(event));
  EXPECT_CU_ERROR(cuEventQuery(events[0]), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Streams, HostFunctionsRunElsewhereAndInOrder) {
  struct Seen {
    std::thread::id thread;
    std::uint32_t* word;
    std::uint32_t value;
  } seen = {{}, words(), 0};
  EXPECT_CU(cuMemsetD32Async(address(seen.word), 6, 1, stream_));
  EXPECT_CU(cuLaunchHostFunc(
      stream_,
      [](void* argument) {
        auto& s = *static_cast<Seen*>(argument);
        s.thread = std::this_thread::get_id();
        s.value = *s.word;
      },
      &seen));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(seen.value, 6u);
  EXPECT_NE(seen.thread, std::this_thread::get_id());
}

TEST_F(Streams, WorkIsDoneAlsoWhenNobodyWaitsAnyMore) {
  constexpr std::uint32_t kWaitedFor = 200;  // enough for the engine's thread to leave the work to who waits
  std::uint32_t* data = words();
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < kWaitedFor; ++i) {
      EXPECT_CU(launch("Write", 1, 1, stream_, {data, nullptr, 0, i}));
      EXPECT_CU(cuStreamSynchronize(stream_));
    }
    EXPECT_CU(launch("Write", 1, 1, stream_, {data, nullptr, 0, kWaitedFor}));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::atomic_ref<std::uint32_t>(data[0]).load() != kWaitedFor && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    EXPECT_EQ(std::atomic_ref<std::uint32_t>(data[0]).load(), kWaitedFor);
  }
}

TEST_F(Streams, ValuesAreWaitedForAndWritten) {
  std::uint32_t* data = words();
  EXPECT_CU(cuStreamWaitValue32(stream_, address(data), 3, CU_STREAM_WAIT_VALUE_GEQ));
  EXPECT_CU(cuStreamWriteValue64(stream_, address(data + 2), 11, 0));
  EXPECT_CU_ERROR(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  std::atomic_ref<std::uint32_t>(data[0]).store(3);
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(data[2], 11u);
}

TEST_F(Streams, PageableSourcesMayBeReusedAtOnce) {
  std::uint32_t* data = words();
  std::uint32_t source = 21;
  EXPECT_CU(cuStreamWaitValue32(stream_, address(data), 1, CU_STREAM_WAIT_VALUE_EQ));
  EXPECT_CU(cuMemcpyHtoDAsync(address(data + 4), &source, 4, stream_));
  source = 0;
  std::atomic_ref<std::uint32_t>(data[0]).store(1);
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(data[4], 21u);
}

TEST_F(Streams, StaleHandlesAreRefused) {
  CUstream stream = nullptr;
  EXPECT_CU(cuStreamCreate(&stream, 0));
  EXPECT_CU(cuStreamDestroy(stream));
  EXPECT_CU_ERROR(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace tutti::softgpu::test
