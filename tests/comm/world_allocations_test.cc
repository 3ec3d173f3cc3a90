// A call like the one before it allocates nothing: what was collected, planned and launched last time left its storage.
#include <cstdlib>
#include <new>

#include "comm/world.h"

namespace {

/// Of the calling thread, while it counts.
thread_local constinit bool counting = false;
thread_local constinit long allocations = 0;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (counting) ++allocations;
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, whole == 0 ? alignment : whole);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace tutti::comm {
namespace {

using test::Ints;
using test::Member;
using test::withComm;

constexpr int kWarmUp = 10;
constexpr int kRepeats = 100;
constexpr std::size_t kCount = 64;

/// What the calling thread allocates in `call`.
template <class Call>
long allocationsIn(Call&& call) {
  allocations = 0;
  counting = true;
  call();
  counting = false;
  return allocations;
}

/// The first call makes the storage; it shows that what the library allocates is seen at all. Later ones make none.
template <class Call, class Wait>
void allocatesOnce(Call&& call, Wait&& wait) {
  EXPECT_GT(allocationsIn(call), 0);
  wait();
  for (int i = 0; i < kWarmUp; ++i) {
    call();
    wait();
  }
  EXPECT_EQ(allocationsIn([&] {
              for (int i = 0; i < kRepeats; ++i) call();
            }),
            0);
  wait();
}

TEST(RepeatedCalls, OfALoneRankAllocateNothing) {
  test::withComm(1, [](test::Member& m) {
    const test::Ints in(m.gpu, kCount, 3);
    const test::Ints out(m.gpu, kCount, -1);
    allocatesOnce(
        [&] {
          ASSERT_EQ(ncclAllReduce(in.at(), out.at(), kCount, ncclFloat, ncclAvg, m.comm, m.stream()), ncclSuccess);
        },
        [&] { m.sync(); });
  });
}

TEST(RepeatedCalls, OfOneCommunicatorAllocateNothing) {
  test::withComm(2, [](test::Member& m) {
    const test::Ints in(m.gpu, kCount, m.rank + 1);
    const test::Ints out(m.gpu, kCount, -1);
    allocatesOnce(
        [&] {
          ASSERT_EQ(ncclAllReduce(in.at(), out.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
        },
        [&] { m.sync(); });
    EXPECT_EQ(out.read(), std::vector<int>(kCount, 3));
  });
}

TEST(RepeatedCalls, OfAMessageToOneselfAllocateNothing) {
  test::withComm(1, [](test::Member& m) {
    const test::Ints in(m.gpu, kCount, 5);
    const test::Ints out(m.gpu, kCount, -1);
    allocatesOnce(
        [&] {
          ncclGroupStart();
          ASSERT_EQ(ncclSend(in.at(), kCount, ncclInt32, 0, m.comm, m.stream()), ncclSuccess);
          ASSERT_EQ(ncclRecv(out.at(), kCount, ncclInt32, 0, m.comm, m.stream()), ncclSuccess);
          ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
        },
        [&] { m.sync(); });
    EXPECT_EQ(out.read(), std::vector<int>(kCount, 5));
  });
}

TEST(RepeatedCalls, OfAGroupOfTwoMessagesAllocateNothing) {
  test::withComm(2, [](test::Member& m) {
    const test::Ints in(m.gpu, kCount, m.rank);
    const test::Ints out(m.gpu, kCount, -1);
    const int peer = 1 - m.rank;
    allocatesOnce(
        [&] {
          ncclGroupStart();
          ASSERT_EQ(ncclSend(in.at(), kCount, ncclInt32, peer, m.comm, m.stream()), ncclSuccess);
          ASSERT_EQ(ncclRecv(out.at(), kCount, ncclInt32, peer, m.comm, m.stream()), ncclSuccess);
          ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
        },
        [&] { m.sync(); });
    EXPECT_EQ(out.read(), std::vector<int>(kCount, peer));
  });
}

TEST(RepeatedCalls, OfAGroupOverTwoCommunicatorsAllocateNothing) {
  std::vector<ncclComm_t> comms(2);
  ASSERT_EQ(ncclCommInitAll(comms.data(), 2, nullptr), ncclSuccess);
  std::vector<test::Member> members;
  std::vector<test::Ints> buffers;
  for (int r = 0; r < 2; ++r) {
    const gpu::Device& gpu = test::device(r);
    members.push_back({r, 2, comms[static_cast<std::size_t>(r)], gpu, gpu::Stream::create(gpu).value()});
    buffers.emplace_back(gpu, kCount, r + 1);
  }
  allocatesOnce(
      [&] {
        ncclGroupStart();
        for (const test::Member& m : members) {
          const test::Ints& buffer = buffers[static_cast<std::size_t>(m.rank)];
          ASSERT_EQ(ncclBroadcast(buffer.at(), buffer.at(), kCount, ncclInt32, 1, m.comm, m.stream()), ncclSuccess);
        }
        ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
      },
      [&] {
        for (const test::Member& m : members) m.sync();
      });
  EXPECT_EQ(buffers[0].read(), std::vector<int>(kCount, 2));
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

}  // namespace
}  // namespace tutti::comm
