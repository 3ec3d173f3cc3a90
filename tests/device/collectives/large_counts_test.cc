// Vectors beyond 2^31 elements and 4 GiB, without their memory: the ring's templates run over verbs that only take
// notes, and loops over groups so large that one thread's share is small.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "device/collectives/ring.h"
#include "device/partition.h"
#include "device/simt/simt.h"

namespace tutti::device {
namespace {

constexpr std::uint64_t k2G = std::uint64_t{1} << 31;
constexpr std::uint64_t k4G = std::uint64_t{1} << 32;

/// Ranges of one buffer.
class Coverage {
 public:
  void add(std::uint64_t begin, std::uint64_t count) {
    if (count > 0) ranges_.push_back({begin, count});
  }
  /// Every element of [0, count) exactly once.
  bool isOnce(std::uint64_t count) {
    std::sort(ranges_.begin(), ranges_.end(), [](Part a, Part b) { return a.begin < b.begin; });
    std::uint64_t next = 0;
    for (const Part& range : ranges_) {
      if (range.begin != next) return false;
      next = range.end();
    }
    return next == count;
  }

 private:
  std::vector<Part> ranges_;
};

/// Prims that write down what they are asked. Buffers are addresses that nobody follows.
template <class T>
class Notes {
 public:
  static const T* input() { return reinterpret_cast<const T*>(std::uintptr_t{1} << 44); }
  static T* output() { return reinterpret_cast<T*>(std::uintptr_t{1} << 45); }

  void send(const T* in, std::uint64_t n) { read(in, n), sent(n); }
  void copySend(const T* in, T* out, std::uint64_t n) { read(in, n), write(out, n), sent(n); }
  void recv(T* out, std::uint64_t n) { write(out, n), received(n); }
  void recvCopySend(T* out, std::uint64_t n) { write(out, n), received(n), sent(n); }
  void recvReduceSend(const T* in, std::uint64_t n) { read(in, n), received(n), sent(n); }
  void recvReduceCopy(const T* in, T* out, std::uint64_t n) { read(in, n), write(out, n), received(n); }
  void recvReduceCopySend(const T* in, T* out, std::uint64_t n) { read(in, n), write(out, n), received(n), sent(n); }
  void copyLocal(const T* in, T* out, std::uint64_t n) { read(in, n), write(out, n); }

  Coverage reads, writes;
  std::vector<std::uint64_t> sends, receives;

 private:
  static std::uint64_t bytesFrom(const T* base, const T* at) {
    return reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(base);
  }
  void read(const T* at, std::uint64_t n) { reads.add(bytesFrom(input(), at) / sizeof(T), n); }
  void write(const T* at, std::uint64_t n) { writes.add(bytesFrom(output(), at) / sizeof(T), n); }
  void sent(std::uint64_t n) {
    if (n > 0) sends.push_back(n);
  }
  void received(std::uint64_t n) {
    if (n > 0) receives.push_back(n);
  }
};

template <class T>
void runRing(Func func, Notes<T>& notes, const Ring& ring, const RingWork& work) {
  if (func == Func::AllReduce) ringAllReduce(notes, ring, work, notes.input(), notes.output());
  if (func == Func::ReduceScatter) ringReduceScatter(notes, ring, work, notes.input(), notes.output());
  if (func == Func::AllGather) ringAllGather(notes, ring, work, notes.input(), notes.output());
  if (func == Func::Broadcast) ringBroadcast(notes, ring, work, notes.input(), notes.output());
  if (func == Func::Reduce) ringReduce(notes, ring, work, notes.input(), notes.output());
}

/// One collective on all ranks and channels; what each rank touched, and whether neighbours agree on every length.
template <class T>
std::vector<Notes<T>> simulate(Func func, std::uint64_t count, int nRanks, int root) {
  constexpr unsigned kChannels = 3;
  constexpr std::uint64_t kChunk = (std::uint64_t{64} << 20) / sizeof(T);
  std::vector<Notes<T>> all(static_cast<std::size_t>(nRanks));
  std::vector<std::vector<std::int32_t>> orders;
  for (int r = 0; r < nRanks; ++r) {
    orders.emplace_back();
    for (int k = 0; k < nRanks; ++k) orders.back().push_back((r + k) % nRanks);
  }
  for (unsigned channel = 0; channel < kChannels; ++channel) {
    for (int r = 0; r < nRanks; ++r) {
      const RingWork work{channelPart(count, sizeof(T), kChannels, channel), count, kChunk, root};
      runRing(func, all[static_cast<std::size_t>(r)], Ring{orders[static_cast<std::size_t>(r)].data(), nRanks}, work);
    }
  }
  for (int r = 0; r < nRanks; ++r) {
    EXPECT_EQ(all[static_cast<std::size_t>(r)].sends, all[static_cast<std::size_t>((r + 1) % nRanks)].receives) << r;
  }
  return all;
}

template <class T>
void checkAll(std::uint64_t count) {
  constexpr int kRanks = 3;
  constexpr int kRoot = 1;
  const auto check = [&](Func func, std::uint64_t reads, std::uint64_t writes) {
    auto all = simulate<T>(func, count, kRanks, kRoot);
    for (int r = 0; r < kRanks; ++r) {
      Notes<T>& notes = all[static_cast<std::size_t>(r)];
      const bool readsNothing = func == Func::Broadcast && r != kRoot;
      const bool writesNothing = func == Func::Reduce && r != kRoot;
      EXPECT_TRUE(notes.reads.isOnce(readsNothing ? 0 : reads)) << static_cast<int>(func) << " rank " << r;
      EXPECT_TRUE(notes.writes.isOnce(writesNothing ? 0 : writes)) << static_cast<int>(func) << " rank " << r;
    }
  };
  check(Func::AllReduce, count, count);
  check(Func::ReduceScatter, count * kRanks, count);
  check(Func::AllGather, count, count * kRanks);
  check(Func::Broadcast, count, count);
  check(Func::Reduce, count, count);
}

TEST(LargeCounts, RingsCoverVectorsBeyond2To31Elements) {
  for (const std::uint64_t count : {k2G - 1, k2G + 5, k4G + 129}) checkAll<std::int8_t>(count);
}

TEST(LargeCounts, RingsCoverWideElementsBeyond4GiB) {
  checkAll<std::int64_t>((std::uint64_t{1} << 29) + 3);
  checkAll<double>(k2G + 1);
}

TEST(LargeCounts, ChannelsCoverEveryElementOnceAndKeepAlignment) {
  for (const std::uint64_t count : {k2G + 1, k4G - 1, (k4G << 8) + 77}) {
    for (const std::size_t bytes : {1u, 2u, 8u}) {
      for (const unsigned channels : {1u, 7u, 64u}) {
        Coverage coverage;
        for (unsigned c = 0; c < channels; ++c) {
          const Part part = channelPart(count, bytes, channels, c);
          EXPECT_EQ(part.begin * bytes % kGrainBytes, 0u);
          EXPECT_LE(part.count, count / channels + 2 * grainOf(bytes)) << "even shares";
          coverage.add(part.begin, part.count);
        }
        EXPECT_TRUE(coverage.isOnce(count)) << count << " over " << channels;
      }
    }
  }
}

TEST(LargeCounts, ThreadsOfAGroupShareLongLoops) {
  // The last of 2^20 threads: its indices lie beyond 2^32.
  const simt::Group group{(1u << 20) - 1, 1u << 20};
  const std::uint64_t n = k4G + 4096;
  std::uint64_t calls = 0;
  std::uint64_t first = ~std::uint64_t{0};
  std::uint64_t last = 0;
  struct Record {
    std::uint64_t* calls;
    std::uint64_t* first;
    std::uint64_t* last;
  } record{&calls, &first, &last};
  simt::forEachRun(group, n, 100, [record](simt::Group, std::uint64_t begin, std::uint64_t count) {
    *record.calls += count;
    *record.first = std::min(*record.first, begin);
    *record.last = std::max(*record.last, begin + count);
  });
  EXPECT_EQ(last, n);
  EXPECT_EQ(calls, last - first);
  EXPECT_GE(first, n - 2 * (n >> 20));
  EXPECT_GT(first, k4G - k2G);
}

}  // namespace
}  // namespace tutti::device
