#include "softgpu/exec/store_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

namespace tutti::softgpu {
namespace {

constexpr std::uint64_t kMine = 7, kOther = 8;

/// Who loads knows the stores of one block.
class KnowsBlock final : public StoreHistory::Known {
 public:
  explicit KnowsBlock(std::uint64_t block) : block_(block) {}
  bool mustSee(const Storer& storer, std::uint64_t, std::uint64_t) const override { return storer.block == block_; }

 private:
  const std::uint64_t block_;
};

/// 32 bytes in two lines, all 0 at first, and what has been stored there.
class Histories : public ::testing::Test {
 protected:
  template <class T>
  void store(std::size_t offset, T value, std::uint64_t block = kOther) {
    std::array<unsigned char, sizeof(T)> bytes{};
    std::memcpy(bytes.data(), &value, sizeof(T));
    history_.store(at(offset), bytes.data(), sizeof(T), {block, 0, 1});
  }
  template <class T>
  T load(std::size_t offset, std::uint64_t time) const {
    std::array<unsigned char, sizeof(T)> bytes{};
    history_.load(bytes.data(), at(offset), sizeof(T), time, KnowsBlock(kMine));
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  std::uintptr_t at(std::size_t offset) const { return reinterpret_cast<std::uintptr_t>(memory_.data()) + offset; }

  alignas(16) std::array<unsigned char, 32> memory_{};
  StoreHistory history_;
};

TEST_F(Histories, TellWhatWasThereAtEachTime) {
  EXPECT_EQ(history_.now(), 0u);
  store<std::uint32_t>(4, 10);
  store<std::uint32_t>(20, 5);
  store<std::uint32_t>(4, 11);
  EXPECT_EQ(history_.now(), 3u);
  EXPECT_EQ(load<std::uint32_t>(4, 3), 11u);
  EXPECT_EQ(load<std::uint32_t>(4, 2), 10u);
  EXPECT_EQ(load<std::uint32_t>(4, 1), 10u);
  EXPECT_EQ(load<std::uint32_t>(4, 0), 0u);
  EXPECT_EQ(load<std::uint32_t>(20, 1), 0u);
  EXPECT_EQ(load<std::uint32_t>(20, 2), 5u);
}

TEST_F(Histories, TakeTheBytesThatALoadSharesWithAStore) {
  store<std::uint64_t>(8, 0x1111111111111111);
  store<std::uint32_t>(12, 0x22222222);
  store<std::uint64_t>(16, 0x3333333333333333);
  EXPECT_EQ(load<std::uint64_t>(8, 2), 0x2222222211111111u);
  EXPECT_EQ(load<std::uint64_t>(8, 1), 0x1111111111111111u);
  EXPECT_EQ(load<std::uint64_t>(12, 3), 0x3333333322222222u) << "from two lines";
  EXPECT_EQ(load<std::uint64_t>(12, 2), 0x22222222u);
  EXPECT_EQ(load<std::uint64_t>(12, 1), 0x11111111u);
  EXPECT_EQ(load<std::uint64_t>(12, 0), 0u);
}

TEST_F(Histories, DoNotOverlookWhatTheLoaderKnows) {
  store<std::uint32_t>(0, 1);
  store<std::uint32_t>(0, 2, kMine);
  store<std::uint32_t>(0, 3);
  EXPECT_EQ(load<std::uint32_t>(0, 3), 3u);
  EXPECT_EQ(load<std::uint32_t>(0, 0), 2u) << "its own store, and nothing older";
}

TEST_F(Histories, ForgetTheOldestStores) {
  store<std::uint32_t>(0, 1);
  store<std::uint32_t>(0, 2);
  for (std::uint64_t i = 2; i < StoreHistory::kMost; ++i) store<std::uint32_t>(16, 9);
  EXPECT_EQ(load<std::uint32_t>(0, 0), 0u);
  store<std::uint32_t>(16, 9);
  EXPECT_EQ(load<std::uint32_t>(0, 0), 1u) << "the first is forgotten";
  store<std::uint32_t>(16, 9);
  EXPECT_EQ(load<std::uint32_t>(0, 0), 2u);
}

TEST_F(Histories, CountOtherEvents) {
  store<std::uint32_t>(0, 1);
  EXPECT_EQ(history_.tick(), 2u);
  store<std::uint32_t>(0, 2);
  EXPECT_EQ(history_.now(), 3u);
  EXPECT_EQ(load<std::uint32_t>(0, 2), 1u);
  for (std::uint64_t i = 3; i < StoreHistory::kMost + 2; ++i) history_.tick();
  EXPECT_EQ(load<std::uint32_t>(0, 0), 1u) << "the first is forgotten";
}

TEST_F(Histories, AreUsedByManyThreads) {
  constexpr std::uint64_t kTimes = 3 * StoreHistory::kMost;
  const auto count = [this](std::size_t offset) {
    for (std::uint64_t i = 1; i <= kTimes; ++i) store<std::uint64_t>(offset, i);
  };
  std::thread first(count, 0), second(count, 16);
  bool right = true;
  std::uint64_t newest = 0;
  while (history_.now() < 2 * kTimes) {
    const std::uint64_t now = history_.now();
    const auto before = load<std::uint64_t>(0, now - std::min<std::uint64_t>(now, 100));
    const auto after = load<std::uint64_t>(0, now);
    right = right && before >= newest && after >= before;
    newest = before;
  }
  first.join();
  second.join();
  EXPECT_TRUE(right) << "a later time has an older value";
  EXPECT_EQ(load<std::uint64_t>(0, history_.now()), kTimes);
  EXPECT_EQ(load<std::uint64_t>(16, history_.now()), kTimes);
}

TEST_F(Histories, NumberBlocks) {
  const std::uint64_t first = history_.newBlock();
  EXPECT_NE(history_.newBlock(), first);
}

}  // namespace
}  // namespace tutti::softgpu
