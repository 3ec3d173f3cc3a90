#include "transport/common/registered_memory.h"

#include <gtest/gtest.h>

namespace tutti::transport {
namespace {

struct CountingHolder : RegistrationHolder {
  void tidy() override { ++calls; }
  int calls = 0;
};

TEST(RegisteredMemory, HoldsWhatLiesWhollyInARange) {
  RegisteredMemory memory;
  memory.add(0x1000, 0x3000);
  EXPECT_TRUE(memory.covers(0x1000, 0x2000));
  EXPECT_TRUE(memory.covers(0x2fff, 1));
  EXPECT_FALSE(memory.covers(0x2fff, 2));
  EXPECT_FALSE(memory.covers(0xfff, 2));
  EXPECT_FALSE(memory.covers(0x2000, ~std::size_t{0})) << "its end is no address";
}

TEST(RegisteredMemory, TheLatestOfSeveralRangesIsFound) {
  RegisteredMemory memory;
  const std::uint64_t first = memory.add(0x1000, 0x4000);
  const std::uint64_t second = memory.add(0x2000, 0x3000);
  EXPECT_EQ(memory.find(0x2000, 16)->id, second);
  EXPECT_EQ(memory.find(0x1ff8, 16)->id, first);
  memory.remove(second);
  EXPECT_EQ(memory.find(0x2000, 16)->id, first);
  EXPECT_FALSE(memory.knows(second));
}

TEST(RegisteredMemory, RangesOfGraphsCountForTheirCaptureAlone) {
  RegisteredMemory memory;
  EXPECT_TRUE(memory.addForGraph(0x1000, 0x3000, 7));
  EXPECT_FALSE(memory.addForGraph(0x1000, 0x2000, 7)) << "it lies in the first";
  EXPECT_TRUE(memory.addForGraph(0x1000, 0x2000, 8));
  EXPECT_FALSE(memory.covers(0x1000, 16));
  EXPECT_TRUE(memory.covers(0x2800, 16, 7));
  EXPECT_FALSE(memory.covers(0x2800, 16, 8));
  memory.removeForGraph(7);
  EXPECT_FALSE(memory.covers(0x1000, 16, 7));
  EXPECT_TRUE(memory.find(0x1000, 16)) << "of the other graph";
}

TEST(RegisteredMemory, WhatAGraphUsedIsOutdatedOnceItIsRegisteredAgain) {
  RegisteredMemory memory;
  memory.addForGraph(0x1000, 0x3000, 7);
  const std::uint64_t again = memory.add(0x2000, 0x3000);
  EXPECT_EQ(memory.find(0x2000, 16)->id, again);
  EXPECT_FALSE(memory.find(0x1000, 16)) << "it may have been freed since";
  memory.remove(again);
  EXPECT_FALSE(memory.find(0x2000, 16));
}

TEST(RegisteredMemory, RefusalIsToldOnce) {
  RegisteredMemory memory;
  const std::uint64_t range = memory.add(0x1000, 0x3000);
  EXPECT_TRUE(memory.refuse(range));
  EXPECT_FALSE(memory.refuse(range));
  EXPECT_FALSE(memory.covers(0x1000, 16));
  EXPECT_TRUE(memory.find(0x1000, 16)->refused);
  EXPECT_FALSE(memory.refuse(range + 1));
}

TEST(RegisteredMemory, HoldersTidyUpWhenSomethingHasGone) {
  RegisteredMemory memory;
  CountingHolder holder;
  memory.join(holder);
  const std::uint64_t range = memory.add(0x1000, 0x3000);
  memory.tidy();
  EXPECT_EQ(holder.calls, 0);
  memory.remove(range);
  EXPECT_EQ(holder.calls, 1);
  memory.remove(range);
  EXPECT_EQ(holder.calls, 1);
  memory.addForGraph(0x1000, 0x3000, 7);
  memory.removeForGraph(7);
  EXPECT_EQ(holder.calls, 1) << "nobody may be called there";
  memory.tidy();
  memory.tidy();
  EXPECT_EQ(holder.calls, 2);
  memory.leave(holder);
  memory.addForGraph(0x1000, 0x3000, 8);
  memory.removeForGraph(8);
  memory.tidy();
  EXPECT_EQ(holder.calls, 2);
}

}  // namespace
}  // namespace tutti::transport
