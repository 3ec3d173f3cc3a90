// The rules of late stores and early loads, on kernels small enough to reason about. A rule that forbids something is
// tested with many seeds; a rule that allows something must show it with at least one.
#include <gtest/gtest.h>

#include <array>

#include "device/block_executor.h"
#include "device/simt/simt.h"

namespace tutti::softgpu::test {
namespace {

using device::test::BlockExecutor;

struct OrderShared {
  std::uint32_t word[64];
};

/// Where writers and readers meet. All of it is memory that others see.
struct OrderParams {
  std::uint64_t* data;
  std::uint64_t* flag;
  std::uint64_t* seen;  ///< what readers found
};

constexpr int kSeeds = 100;

/// Runs `kernels` side by side and says how often a reader saw the flag without the data.
template <std::size_t kKernels>
int stale(const std::array<std::pair<const simt::HostKernel*, unsigned>, kKernels>& kernels) {
  int count = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    alignas(128) std::array<std::uint64_t, 64> data{};
    alignas(128) std::array<std::uint64_t, 64> flag{};
    alignas(128) std::array<std::uint64_t, 64> seen{};
    device::test::BlockExecutor executor({seed, seed * 31});
    for (const auto& [kernel, threads] : kernels) {
      executor.launch(*kernel, 1, threads, OrderParams{data.data(), flag.data(), seen.data()});
    }
    EXPECT_TRUE(executor.run()) << "seed " << seed;
    if (seen[0] != 1) ++count;
  }
  return count;
}

#define KERNEL(Name, body) TUTTI_KERNEL(Name, OrderParams, OrderShared, 64, body)

void readBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  while (t.loadAcquireSys(p.flag) == 0) t.pause();
  t.storeRelaxedSys(p.seen, simt::loadData<std::uint64_t>(p.data, 0));
}
KERNEL(Read, readBody)

// --- one thread

void relaxedBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  t.storeRelaxedSys(p.data, std::uint64_t{1});
  t.storeRelaxedSys(p.flag, std::uint64_t{1});
  for (int i = 0; i < 100; ++i) t.pause();
}
KERNEL(Relaxed, relaxedBody)

void releaseBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  t.storeRelaxedSys(p.data, std::uint64_t{1});
  t.storeReleaseSys(p.flag, std::uint64_t{1});
}
KERNEL(Release, releaseBody)

void fenceBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  t.storeVolatile(p.data, std::uint64_t{1});
  t.fenceSys();
  t.storeVolatile(p.flag, std::uint64_t{1});
  for (int i = 0; i < 100; ++i) t.pause();
}
KERNEL(Fence, fenceBody)

void blockFenceBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  simt::storeData(p.data, 0, std::uint64_t{1});
  t.fenceBlock();
  t.storeVolatile(p.flag, std::uint64_t{1});
  for (int i = 0; i < 100; ++i) t.pause();
}
KERNEL(BlockFence, blockFenceBody)

void copiedBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  const std::uint64_t one = 1;
  simt::copyBytes({0, 1}, p.data, &one, sizeof(one), false);
  t.storeReleaseSys(p.flag, std::uint64_t{1});
}
KERNEL(Copied, copiedBody)

void streamedBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  const std::uint64_t one = 1;
  simt::copyBytes({0, 1}, p.data, &one, sizeof(one), true);
  simt::finishStreaming();
  t.storeReleaseSys(p.flag, std::uint64_t{1});
}
KERNEL(Streamed, streamedBody)

void unfinishedBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  const std::uint64_t one = 1;
  simt::copyBytes({0, 1}, p.data, &one, sizeof(one), true);
  t.storeReleaseSys(p.flag, std::uint64_t{1});
}
KERNEL(Unfinished, unfinishedBody)

/// Its own stores, at once and in order, also in parts and across units.
void forwardBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  bool right = true;
  for (std::uint64_t i = 1; i < 50; ++i) {
    t.storeRelaxedSys(p.data + i % 4, i);
    t.storeVolatile(reinterpret_cast<std::uint32_t*>(p.data + i % 4), static_cast<std::uint32_t>(i + 5));
    right = right && t.loadRelaxedSys(p.data + i % 4) == i + 5;
    std::uint64_t copy[4];
    simt::copyBytes({0, 1}, copy, p.data, sizeof(copy), false);
    right = right && copy[i % 4] == i + 5;
    t.pause();
  }
  t.storeRelaxedSys(p.seen, std::uint64_t{right});
}
KERNEL(Forward, forwardBody)

TEST(WeakMemory, RelaxedStoresAreReordered) {
  EXPECT_GT(stale<2>({{{&Relaxed_hostKernel, 1}, {&Read_hostKernel, 1}}}), kSeeds / 20);
}

TEST(WeakMemory, ReleasesAndFencesOrder) {
  EXPECT_EQ(stale<2>({{{&Release_hostKernel, 1}, {&Read_hostKernel, 1}}}), 0);
  EXPECT_EQ(stale<2>({{{&Fence_hostKernel, 1}, {&Read_hostKernel, 1}}}), 0);
  EXPECT_EQ(stale<2>({{{&Copied_hostKernel, 1}, {&Read_hostKernel, 1}}}), 0);
  EXPECT_EQ(stale<2>({{{&Streamed_hostKernel, 1}, {&Read_hostKernel, 1}}}), 0);
}

TEST(WeakMemory, ReleasesDoNotCoverStreamsThatWereNotFinished) {
  EXPECT_GT(stale<2>({{{&Unfinished_hostKernel, 1}, {&Read_hostKernel, 1}}}), 0);
}

TEST(WeakMemory, AFenceOfTheBlockOrdersNothingForOthers) {
  EXPECT_GT(stale<2>({{{&BlockFence_hostKernel, 1}, {&Read_hostKernel, 1}}}), 0);
}

TEST(WeakMemory, AThreadSeesItsOwnStores) {
  EXPECT_EQ(stale<1>({{{&Forward_hostKernel, 1}}}), 0);
}

// --- a block

void passedBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  if (t.index() == 40) t.storeRelaxedSys(p.data, std::uint64_t{1});
  t.syncBlock();
  if (t.index() == 3) t.storeReleaseSys(p.flag, std::uint64_t{1});
}
KERNEL(Passed, passedBody)

void relayedBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  if (t.index() == 40) t.storeRelaxedSys(p.data, std::uint64_t{1});
  if (t.warp() == 1) t.syncWarp();
  if (t.index() == 33 || t.warp() == 0) t.syncGroup(2, 64);
  if (t.warp() == 1 && t.index() != 33) t.syncGroup(2, 64);
  if (t.index() == 3) t.storeReleaseSys(p.flag, std::uint64_t{1});
}
KERNEL(Relayed, relayedBody)

void barrierOnlyBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  if (t.index() == 40) t.storeRelaxedSys(p.data, std::uint64_t{1});
  t.syncBlock();
  if (t.index() == 3) t.storeRelaxedSys(p.flag, std::uint64_t{1});
  for (int i = 0; i < 100; ++i) t.pause();
}
KERNEL(BarrierOnly, barrierOnlyBody)

/// The release is not the barrier's business: thread 40 stored after it.
void tooLateBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  t.syncBlock();
  if (t.index() == 40) t.storeRelaxedSys(p.data, std::uint64_t{1});
  t.ballot(true);
  if (t.index() == 3) t.storeReleaseSys(p.flag, std::uint64_t{1});
  for (int i = 0; i < 100; ++i) t.pause();
}
KERNEL(TooLate, tooLateBody)

void votedBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  if (t.index() == 20) t.storeRelaxedSys(p.data, std::uint64_t{1});
  t.ballot(true);
  if (t.index() == 3) t.storeReleaseSys(p.flag, std::uint64_t{1});
  for (int i = 0; i < 100; ++i) t.pause();
}
KERNEL(Voted, votedBody)

void sharedBody(simt::Thread t, OrderShared& shared, const OrderParams& p) {
  t.storeRelaxedSys(&shared.word[t.index()], t.index());
  t.syncBlock();
  const std::uint32_t mate = (t.index() + 17) % t.threads();
  const bool right = t.ballot(t.loadRelaxedSys(&shared.word[mate]) == mate) == ~std::uint32_t{0};
  if (t.index() == 0) t.storeRelaxedSys(p.seen, std::uint64_t{right});
}
KERNEL(InShared, sharedBody)

TEST(WeakMemory, BarriersPassStoresToLaterReleases) {
  EXPECT_EQ(stale<2>({{{&Passed_hostKernel, 64}, {&Read_hostKernel, 1}}}), 0);
  EXPECT_EQ(stale<2>({{{&Relayed_hostKernel, 64}, {&Read_hostKernel, 1}}}), 0);
}

TEST(WeakMemory, BarriersShowStoresToTheBlock) {
  EXPECT_EQ(stale<1>({{{&InShared_hostKernel, 64}}}), 0);
}

TEST(WeakMemory, BarriersShowNothingToOthers) {
  EXPECT_GT(stale<2>({{{&BarrierOnly_hostKernel, 64}, {&Read_hostKernel, 1}}}), 0);
}

TEST(WeakMemory, ReleasesCoverOnlyWhatABarrierPassed) {
  EXPECT_GT(stale<2>({{{&TooLate_hostKernel, 64}, {&Read_hostKernel, 1}}}), 0);
  EXPECT_GT(stale<2>({{{&Voted_hostKernel, 32}, {&Read_hostKernel, 1}}}), 0);
}

// --- loads

/// How often a reader that is `Reader_hostKernel` misses what was released before the flag it has seen.
int missed(const simt::HostKernel& reader, unsigned threads) {
  return stale<2>({{{&Release_hostKernel, 1}, {&reader, threads}}});
}

void readRelaxedBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  while (t.loadRelaxedSys(p.flag) == 0) t.pause();
  t.storeRelaxedSys(p.seen, simt::loadData<std::uint64_t>(p.data, 0));
}
KERNEL(ReadRelaxed, readRelaxedBody)

void copyRelaxedBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  while (t.loadVolatile(p.flag) == 0) t.pause();
  simt::copyBytes({0, 1}, p.seen, p.data, sizeof(std::uint64_t), false);
}
KERNEL(CopyRelaxed, copyRelaxedBody)

void readFencedBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  while (t.loadRelaxedSys(p.flag) == 0) t.pause();
  t.fenceSys();
  simt::copyBytes({0, 1}, p.seen, p.data, sizeof(std::uint64_t), false);
}
KERNEL(ReadFenced, readFencedBody)

void readBothRelaxedBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  while (t.loadRelaxedSys(p.flag) == 0) t.pause();
  t.storeRelaxedSys(p.seen, t.loadVolatile(p.data));
}
KERNEL(ReadBothRelaxed, readBothRelaxedBody)

/// Thread 3 sees the flag, and `passes` what it has acquired; thread 20 reads the data.
template <class Load, class Pass>
void readBeside(simt::Thread t, const OrderParams& p, Load load, Pass pass) {
  if (t.index() == 3) {
    while (load(p.flag) == 0) t.pause();
  }
  pass();
  if (t.index() == 20) t.storeRelaxedSys(p.seen, simt::loadData<std::uint64_t>(p.data, 0));
}
#define READ_BESIDE(Name, load, pass)                                                    \
  void read##Name##Body(simt::Thread t, OrderShared&, const OrderParams& p) {            \
    readBeside(                                                                          \
        t, p, [&](const std::uint64_t* flag) { return t.load(flag); }, [&] { t.pass; }); \
  }                                                                                      \
  KERNEL(Read##Name, read##Name##Body)
READ_BESIDE(AfterBlock, loadAcquireSys, syncBlock())
READ_BESIDE(AfterGroup, loadAcquireSys, syncGroup(2, t.threads()))
READ_BESIDE(AfterWarp, loadAcquireSys, syncWarp())
READ_BESIDE(AfterVote, loadAcquireSys, ballot(true))
READ_BESIDE(NothingAcquired, loadRelaxedSys, syncBlock())

TEST(WeakMemory, DataIsLoadedBeforeTheFlagWhereNothingOrdersThem) {
  EXPECT_GT(missed(ReadRelaxed_hostKernel, 1), kSeeds / 20);
  EXPECT_GT(missed(CopyRelaxed_hostKernel, 1), kSeeds / 20);
  EXPECT_GT(missed(ReadBothRelaxed_hostKernel, 1), kSeeds / 20);
}

TEST(WeakMemory, AcquiresAndFencesOrderLoads) {
  EXPECT_EQ(missed(Read_hostKernel, 1), 0);
  EXPECT_EQ(missed(ReadFenced_hostKernel, 1), 0);
}

TEST(WeakMemory, BarriersPassOnWhatOneThreadHasAcquired) {
  EXPECT_EQ(missed(ReadAfterBlock_hostKernel, 64), 0);
  EXPECT_EQ(missed(ReadAfterGroup_hostKernel, 64), 0);
  EXPECT_EQ(missed(ReadAfterWarp_hostKernel, 32), 0);
  EXPECT_GT(missed(ReadAfterVote_hostKernel, 32), 0);
  EXPECT_GT(missed(ReadNothingAcquired_hostKernel, 64), 0);
}

/// A fence of the reader's own block orders nothing of others.
void readBlockFencedBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  while (t.loadRelaxedSys(p.flag) == 0) t.pause();
  t.fenceBlock();
  t.storeRelaxedSys(p.seen, simt::loadData<std::uint64_t>(p.data, 0));
}
KERNEL(ReadBlockFenced, readBlockFencedBody)

/// Thread 3 has it from elsewhere and passes it on inside the block.
void readHandedOnBody(simt::Thread t, OrderShared& shared, const OrderParams& p) {
  if (t.index() == 0) t.storeRelaxedSys(&shared.word[0], 0u);
  t.syncBlock();
  if (t.index() == 3) {
    while (t.loadAcquireSys(p.flag) == 0) t.pause();
    t.fenceBlock();
    t.storeVolatile(&shared.word[0], 1u);
  }
  if (t.index() == 40) {
    while (t.loadVolatile(&shared.word[0]) == 0) t.pause();
    t.fenceBlock();
    t.storeRelaxedSys(p.seen, simt::loadData<std::uint64_t>(p.data, 0));
  }
}
KERNEL(ReadHandedOn, readHandedOnBody)

TEST(WeakMemory, FencesOfTheBlockAcquireFromTheBlock) {
  EXPECT_GT(missed(ReadBlockFenced_hostKernel, 1), 0);
  EXPECT_EQ(missed(ReadHandedOn_hostKernel, 64), 0);
}

/// What one thread shows to its block stays seen when it becomes visible to all, between two loads of the other.
void shownBody(simt::Thread t, OrderShared& shared, const OrderParams& p) {
  if (t.index() == 0) t.storeRelaxedSys(&shared.word[0], 0u);
  t.syncBlock();
  if (t.index() == 3) {
    simt::storeData(p.data, 0, std::uint64_t{1});
    t.fenceBlock();
    t.storeVolatile(&shared.word[0], 1u);
  }
  if (t.index() != 40) return;
  while (t.loadVolatile(&shared.word[0]) == 0) t.pause();
  t.fenceBlock();
  bool right = true;
  for (std::size_t i = 0; i < 30; ++i) {
    right = right && simt::loadData<std::uint64_t>(p.data, 0) == 1;
    t.storeRelaxedSys(p.data + 8 + i, std::uint64_t{i});
    t.pause();
  }
  t.storeRelaxedSys(p.seen, std::uint64_t{right});
}
KERNEL(Shown, shownBody)

TEST(WeakMemory, WhatABlockHasSeenStaysSeen) {
  EXPECT_EQ(stale<1>({{{&Shown_hostKernel, 64}}}), 0);
}

void countBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  for (std::uint64_t i = 1; i <= 40; ++i) {
    t.storeRelaxedSys(p.data + i % 2, i);
    if (i % 3 == 0) t.pause();
  }
  t.storeReleaseSys(p.flag, std::uint64_t{1});
}
KERNEL(Count, countBody)

/// Of one place no load returns anything older than the one before, weak or not.
void followBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  bool right = true;
  std::uint64_t newest[2] = {};
  for (std::size_t i = 0; t.loadRelaxedSys(p.flag) == 0 || i < 40; ++i) {
    const std::size_t place = i % 2;
    const std::uint64_t now =
        i % 5 == 0 ? t.loadRelaxedSys(p.data + place) : simt::loadData<std::uint64_t>(p.data, place);
    right = right && now >= newest[place];
    newest[place] = now;
    t.pause();
  }
  t.storeRelaxedSys(p.seen, std::uint64_t{right});
}
KERNEL(Follow, followBody)

TEST(WeakMemory, APlaceIsNeverSeenToGoBack) {
  EXPECT_EQ(stale<2>({{{&Count_hostKernel, 1}, {&Follow_hostKernel, 1}}}), 0);
}

alignas(16) std::array<std::uint64_t, 10'000> elsewhere{};

/// More places than a block remembers.
void forgetBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  while (t.loadRelaxedSys(p.flag) == 0) t.pause();
  std::uint64_t newest = 0;
  while (newest != 1) newest = simt::loadData<std::uint64_t>(p.data, 0);
  for (std::size_t i = 0; i < elsewhere.size(); i += 2) newest += simt::loadData<std::uint64_t>(elsewhere.data(), i);
  bool right = newest == 1;
  for (int i = 0; i < 20; ++i) right = right && simt::loadData<std::uint64_t>(p.data, 0) == 1;
  t.storeRelaxedSys(p.seen, std::uint64_t{right});
}
KERNEL(Forget, forgetBody)

TEST(WeakMemory, APlaceDoesNotGoBackWhenABlockForgetsWhatItHasSeen) {
  EXPECT_EQ(missed(Forget_hostKernel, 1), 0);
}

/// A thread's own stores, and those that a barrier has passed to it, once they have become visible.
void ownBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  bool right = true;
  for (std::uint64_t i = 1; i <= 20; ++i) {
    simt::storeData(p.data, t.index(), i);
    for (int wait = 0; wait < 10; ++wait) t.pause();
    right = right && simt::loadData<std::uint64_t>(p.data, t.index()) == i;
    t.syncBlock();
    for (int wait = 0; wait < 10; ++wait) t.pause();
    right = right && simt::loadData<std::uint64_t>(p.data, (t.index() + 1) % t.threads()) == i;
    t.syncBlock();
  }
  if (t.ballot(right) == ~std::uint32_t{0} && t.index() == 0) t.storeRelaxedSys(p.seen, std::uint64_t{1});
}
KERNEL(Own, ownBody)

TEST(WeakMemory, LoadsDoNotMissStoresThatTheirThreadKnows) {
  EXPECT_EQ(stale<1>({{{&Own_hostKernel, 32}}}), 0);
}

// --- lines

void writeLinesBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  const simt::Group group{t.index(), t.threads()};
  auto* parts = reinterpret_cast<simt::Pack16*>(p.data);
  for (unsigned i = t.index(); i < 32; i += t.threads()) t.storeLine16(group, parts + i, {1, 1});
  for (int i = 0; i < 50; ++i) t.pause();
}
KERNEL(WriteLines, writeLinesBody)

/// Every line whose flag is there must be there as a whole.
void readLinesBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  const simt::Group group{t.index(), t.threads()};
  const auto* parts = reinterpret_cast<const simt::Pack16*>(p.data);
  bool right = true;
  for (unsigned line : {1u, 0u, 2u, 3u}) {
    const simt::Pack16* part = t.index() < 8 ? parts + line * 8 + t.index() : nullptr;
    simt::Pack16 value{};
    bool ready = false;
    while (!ready) {
      value = t.loadLine16(group, part);
      ready = t.any(t.index() == 7 && value.word[1] == 1);
      if (!ready) t.pause();
    }
    right = right && !t.any(part != nullptr && (value.word[0] != 1 || value.word[1] != 1));
  }
  if (t.index() == 0) t.storeRelaxedSys(p.seen, std::uint64_t{right});
}
KERNEL(ReadLines, readLinesBody)

TEST(WeakMemory, LinesAppearWhole) {
  EXPECT_EQ(stale<2>({{{&WriteLines_hostKernel, 32}, {&ReadLines_hostKernel, 32}}}), 0);
  EXPECT_EQ(stale<2>({{{&WriteLines_hostKernel, 1}, {&ReadLines_hostKernel, 32}}}), 0);
}

/// The last pack of a line by plain stores, the rest after it: what storeLine16 is there to prevent.
void tornLinesBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  auto* parts = reinterpret_cast<simt::Pack16*>(p.data);
  t.storeVolatile(parts + t.index(), simt::Pack16{1, 1});
  for (int i = 0; i < 50; ++i) t.pause();
}
KERNEL(TornLines, tornLinesBody)

TEST(WeakMemory, PlainStoresTearLines) {
  EXPECT_GT(stale<2>({{{&TornLines_hostKernel, 32}, {&ReadLines_hostKernel, 32}}}), 0);
}

// --- other rules

void messageBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  t.storeVolatile(reinterpret_cast<simt::Pack16*>(p.data), simt::Pack16{1, 1});
  for (int i = 0; i < 50; ++i) t.pause();
}
KERNEL(Message, messageBody)

void readMessageBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  simt::Pack16 value{};
  while (value.word[0] == 0 && value.word[1] == 0) {
    value = t.loadVolatile(reinterpret_cast<const simt::Pack16*>(p.data));
    t.pause();
  }
  t.storeRelaxedSys(p.seen, value.word[0] & value.word[1]);
}
KERNEL(ReadMessage, readMessageBody)

TEST(WeakMemory, SixteenBytesAreOneUnit) {
  EXPECT_EQ(stale<2>({{{&Message_hostKernel, 1}, {&ReadMessage_hostKernel, 1}}}), 0);
}

void trailingBody(simt::Thread t, OrderShared&, const OrderParams& p) {
  t.storeRelaxedSys(p.seen, std::uint64_t{1});
}
KERNEL(Trailing, trailingBody)

TEST(WeakMemory, TheEndOfAKernelShowsEverything) {
  EXPECT_EQ(stale<1>({{{&Trailing_hostKernel, 32}}}), 0);
}

}  // namespace
}  // namespace tutti::softgpu::test
