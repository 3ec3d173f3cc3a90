#include "softgpu/idle_hook.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "softgpu/cuda_fixture.h"

namespace tutti::softgpu::test {
namespace {

class IdleHook : public CudaTest {
 protected:
  static CUresult add(int (*turn)(void*), void (*leave)(void*), void* argument, std::uint64_t* ticket) {
    return static_cast<CUresult>(softgpuAddIdleHook(turn, leave, argument, ticket));
  }
  static CUresult remove(std::uint64_t ticket) { return static_cast<CUresult>(softgpuRemoveIdleHook(ticket)); }
};

/// What a kernel waits for is brought by the hook alone.
struct Bringer {
  std::uint32_t* flag = nullptr;
  std::atomic<std::uint32_t> asked{0};
  std::atomic<int> turns{0};
  std::atomic<int> leaves{0};
  std::atomic<int> inside{0};

  static int turn(void* argument) {
    auto& self = *static_cast<Bringer*>(argument);
    self.inside.fetch_add(1);
    self.turns.fetch_add(1);
    const bool brings = std::atomic_ref<std::uint32_t>(*self.flag).exchange(self.asked.load()) != self.asked.load();
    self.inside.fetch_sub(1);
    return brings ? 1 : 0;
  }
  static void leave(void* argument) { static_cast<Bringer*>(argument)->leaves.fetch_add(1); }
};

TEST_F(IdleHook, BringsWhatAKernelWaitsForWithoutAnotherThread) {
  std::uint32_t* data = words();
  Bringer bringer;
  bringer.flag = data;
  std::uint64_t ticket = 0;
  EXPECT_CU(add(&Bringer::turn, &Bringer::leave, &bringer, &ticket));
  for (std::uint32_t round = 1; round <= 100; ++round) {
    bringer.asked.store(round);
    EXPECT_CU(launch("Wait", 1, 1, stream_, {data + 64, data, 0, round}));
    EXPECT_CU(cuStreamSynchronize(stream_));
    EXPECT_EQ(data[64], round);
  }
  EXPECT_GT(bringer.turns.load(), 0);
  EXPECT_GT(bringer.leaves.load(), 0);
  EXPECT_CU(remove(ticket));
  EXPECT_CU_ERROR(remove(ticket), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(IdleHook, IsCalledByTheDevicesOwnThreadWhereNobodyWaits) {
  std::uint32_t* data = words();
  Bringer bringer;
  bringer.flag = data;
  bringer.asked.store(1);
  std::uint64_t ticket = 0;
  EXPECT_CU(add(&Bringer::turn, &Bringer::leave, &bringer, &ticket));
  EXPECT_CU(launch("Wait", 1, 1, stream_, {data + 64, data, 0, 1}));
  for (int i = 0; i < 100'000 && cuStreamQuery(stream_) != CUDA_SUCCESS; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  EXPECT_CU(cuStreamQuery(stream_));
  EXPECT_CU(remove(ticket));
}

TEST_F(IdleHook, IsLeftForGoodWhenRemoved) {
  std::uint32_t* data = words();
  std::atomic<bool> over{false};
  Bringer other;  // keeps the kernel waiting until the end
  other.flag = data;
  EXPECT_CU(launch("Wait", 1, 1, stream_, {data + 64, data, 0, 1}));
  std::vector<std::thread> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.emplace_back([&] {
      cuCtxSetCurrent(contexts_[0]);
      while (!over.load()) {
        cuStreamSynchronize(stream_);
        std::this_thread::yield();
      }
    });
  }
  std::vector<std::uint32_t> unused(64);
  for (int i = 0; i < 200; ++i) {
    Bringer brief;
    brief.flag = unused.data();
    std::uint64_t ticket = 0;
    EXPECT_CU(add(&Bringer::turn, &Bringer::leave, &brief, &ticket));
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    EXPECT_CU(remove(ticket));
    EXPECT_EQ(brief.inside.load(), 0);
  }
  std::atomic_ref<std::uint32_t>(*data).store(1);
  over.store(true);
  for (std::thread& thread : waiting) thread.join();
}

TEST_F(IdleHook, RefusesNonsenseAndMoreThanThereIsRoomFor) {
  std::uint64_t ticket = 0;
  EXPECT_CU_ERROR(add(nullptr, &Bringer::leave, nullptr, &ticket), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU_ERROR(add(&Bringer::turn, nullptr, nullptr, &ticket), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU_ERROR(add(&Bringer::turn, &Bringer::leave, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU_ERROR(remove(~std::uint64_t{0}), CUDA_ERROR_INVALID_VALUE);
  std::uint32_t flag = 0;
  Bringer bringer;
  bringer.flag = &flag;
  std::vector<std::uint64_t> tickets;
  while (add(&Bringer::turn, &Bringer::leave, &bringer, &ticket) == CUDA_SUCCESS) tickets.push_back(ticket);
  EXPECT_GE(tickets.size(), 16U);
  EXPECT_CU_ERROR(add(&Bringer::turn, &Bringer::leave, &bringer, &ticket), CUDA_ERROR_OUT_OF_MEMORY);
  for (const std::uint64_t one : tickets) EXPECT_CU(remove(one));
  EXPECT_CU(add(&Bringer::turn, &Bringer::leave, &bringer, &ticket));
  EXPECT_CU(remove(ticket));
}

}  // namespace
}  // namespace tutti::softgpu::test
