#include "softgpu/exec/processors.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <thread>

namespace tutti::softgpu::test {
namespace {

cpu_set_t processorSet(std::initializer_list<int> processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(processor, &set);
  return set;
}

TEST(Processors, FewOfThemAndOneEngineAreServedByOneThread) {
  for (const int processors : {1, 2, 4, 7}) EXPECT_TRUE(oneThreadServes(processors, 1)) << processors;
  for (const int processors : {8, 9, 64, 1024}) EXPECT_FALSE(oneThreadServes(processors, 1)) << processors;
}

TEST(Processors, SeveralEnginesAreServedByTheirOwnThreads) {
  for (const int engines : {2, 3, 8}) EXPECT_FALSE(oneThreadServes(2, engines)) << engines;
  EXPECT_FALSE(oneThreadServes(2, 0)) << "there is nothing to serve";
}

TEST(Processors, AnUnknownNumberIsNotTakenForFew) {
  EXPECT_FALSE(oneThreadServes(0, 1));
}

TEST(Processors, AreCountedAsTheThreadMayUseThem) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(usableProcessors(), CPU_COUNT(&before));
  int confined = -1;
  std::thread([&] {
    const cpu_set_t one = processorSet({nextProcessor(before, CPU_SETSIZE - 1)});
    if (::sched_setaffinity(0, sizeof(one), &one) == 0) confined = usableProcessors();
  }).join();
  EXPECT_EQ(confined, 1);
  EXPECT_EQ(usableProcessors(), CPU_COUNT(&before)) << "another thread's confinement";
}

TEST(Processors, TheNextOneIsTheNextThatIsAllowed) {
  const cpu_set_t some = processorSet({1, 2, 5});
  EXPECT_EQ(nextProcessor(some, 1), 2);
  EXPECT_EQ(nextProcessor(some, 2), 5);
  EXPECT_EQ(nextProcessor(some, 5), 1) << "after the last comes the first";
  EXPECT_EQ(nextProcessor(some, 3), 5) << "it may have been forbidden since";
  EXPECT_EQ(nextProcessor(processorSet({5}), 5), -1);
  EXPECT_EQ(nextProcessor(processorSet({}), 5), -1);
  EXPECT_EQ(nextProcessor(processorSet({CPU_SETSIZE - 1, 0}), CPU_SETSIZE - 1), 0);
}

}  // namespace
}  // namespace tutti::softgpu::test
