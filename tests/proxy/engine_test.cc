#include "proxy/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>
#include <thread>

#include "proxy/fakes.h"
#include "support/log_capture.h"

namespace tutti {
namespace {

using test::asleep;
using test::eventually;
using test::FakeComm;
using test::FakeTask;
using test::makeEngine;
using test::makeGroup;

TEST(ProgressEngine, StartsItsThreadWithTheFirstTask) {
  FakeComm comm;
  FakeTask task;
  const auto engine = makeEngine();
  const auto group = makeGroup(*engine, comm);
  group->hold();
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(engine->counters().rounds, 0U);
  ASSERT_TRUE(group->add(&task).ok());
  EXPECT_TRUE(eventually([&] { return task.turns.load() > 1; }));
  group->remove(&task);
  group->release();
}

TEST(ProgressEngine, DoesWhatIsPostedWhileHeld) {
  FakeComm comm;
  FakeTask task;
  const auto engine = makeEngine();
  const auto group = makeGroup(*engine, comm);
  ASSERT_TRUE(group->add(&task).ok());
  group->hold();
  for (int i = 0; i < 100; ++i) {
    task.posted.fetch_add(1);
    EXPECT_TRUE(eventually([&] { return task.done.load() == task.posted.load(); }));
  }
  group->release();
  group->remove(&task);
}

TEST(ProgressEngine, SleepsWithoutTakingProcessorTimeWhenNothingIsUnderWay) {
  FakeComm comm;
  FakeTask task;
  const auto engine = makeEngine();
  const auto group = makeGroup(*engine, comm);
  ASSERT_TRUE(group->add(&task).ok());
  ASSERT_TRUE(eventually([&] { return asleep(*engine); }));
  std::this_thread::sleep_for(milliseconds(20));
  const auto before = task.threadTime();
  const EngineCounters counters = engine->counters();
  std::this_thread::sleep_for(milliseconds(500));
  EXPECT_LT(task.threadTime() - before, milliseconds(2));
  EXPECT_EQ(engine->counters().rounds, counters.rounds);
  group->remove(&task);
}

TEST(ProgressEngine, TakesLittleProcessorTimeWhileKernelsNeedNothing) {
  FakeComm comm;
  FakeTask task;
  const auto engine = makeEngine();
  const auto group = makeGroup(*engine, comm);
  comm.running = 1;
  ASSERT_TRUE(group->add(&task).ok());
  ASSERT_TRUE(eventually([&] { return engine->counters().pauses > 20; }));
  const auto before = task.threadTime();
  std::this_thread::sleep_for(milliseconds(400));
  EXPECT_FALSE(asleep(*engine));
  EXPECT_LT(task.threadTime() - before, milliseconds(200));
  group->remove(&task);
}

TEST(ProgressEngine, IsWokenByAHoldWithinAMoment) {
  FakeComm comm;
  FakeTask task;
  const auto engine = makeEngine();
  const auto group = makeGroup(*engine, comm);
  ASSERT_TRUE(group->add(&task).ok());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(eventually([&] { return asleep(*engine); }));
    const auto turns = task.turns.load();
    group->hold();
    EXPECT_TRUE(eventually([&] { return task.turns.load() > turns; }));
    group->release();
  }
  EXPECT_GE(engine->counters().wakeUps, 20U);
  group->remove(&task);
}

TEST(ProgressEngine, StaysUpUntilTheTasksAreQuiet) {
  FakeComm comm;
  FakeTask task;
  task.isQuiet = false;
  const auto engine = makeEngine({.patience = test::hasty()});
  const auto group = makeGroup(*engine, comm);
  ASSERT_TRUE(group->add(&task).ok());
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(asleep(*engine));
  EXPECT_EQ(engine->counters().questions, 0U) << "the driver is asked only where the answer matters";
  task.isQuiet = true;
  EXPECT_TRUE(eventually([&] { return asleep(*engine); }));
  group->remove(&task);
}

TEST(ProgressEngine, StaysUpWhileKernelsRun) {
  FakeComm comm;
  FakeTask task;
  const auto engine = makeEngine({.patience = test::hasty()});
  const auto group = makeGroup(*engine, comm);
  comm.running = 1;
  ASSERT_TRUE(group->add(&task).ok());
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(asleep(*engine));
  comm.running = 0;
  EXPECT_TRUE(eventually([&] { return asleep(*engine); }));
  group->remove(&task);
}

/// A kernel may post its last step after the tasks were looked at and end before the driver is asked.
TEST(ProgressEngine, LooksOnceMoreAfterTheDriverSaidThatNothingRuns) {
  FakeComm comm;
  FakeTask task;
  const auto engine = makeEngine({.patience = test::hasty()});
  GroupHooks hooks = comm.hooks();
  std::atomic<bool> posted{false};
  hooks.busy = [&] {
    if (!posted.exchange(true)) task.posted.fetch_add(1);
    return false;
  };
  const auto group = engine->group(hooks).value();
  ASSERT_TRUE(group->add(&task).ok());
  EXPECT_TRUE(eventually([&] { return asleep(*engine); }));
  EXPECT_EQ(task.done.load(), 1U);
  group->remove(&task);
}

/// A launch that falls beside the question or between it and the decision is covered by nobody's answer.
class LaunchBeside : public testing::TestWithParam<const char*> {};

TEST_P(LaunchBeside, IsNotSleptOver) {
  const bool besideTheQuestion = std::string_view(GetParam()) == "Question";
  FakeComm comm;
  FakeTask task;
  const auto engine = makeEngine({.patience = test::hasty()});
  GroupHooks hooks = comm.hooks();
  ProgressGroup* held = nullptr;
  std::atomic<int> answers{0};
  std::atomic<bool> launched{false};
  const auto launch = [&] {
    if (launched.exchange(true)) return;
    held->hold();
    comm.running = 1;
    held->release();
  };
  hooks.busy = [&] {
    const bool answer = comm.running.load() > 0;
    if (besideTheQuestion) launch();
    answers.fetch_add(1);
    return answer;
  };
  task.whenAsked = [&] {
    if (answers.load() == 1) launch();
  };
  const auto group = engine->group(hooks).value();
  held = group.get();
  ASSERT_TRUE(group->add(&task).ok());
  ASSERT_TRUE(eventually([&] { return launched.load(); }));
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_FALSE(asleep(*engine));
  task.posted.fetch_add(1);
  EXPECT_TRUE(eventually([&] { return task.done.load() == 1; }));
  comm.running = 0;
  EXPECT_TRUE(eventually([&] { return asleep(*engine); }));
  group->remove(&task);
}

INSTANTIATE_TEST_SUITE_P(ProgressEngine, LaunchBeside, testing::Values("Question", "Decision"),
                         [](const auto& one) { return std::string(one.param); });

TEST(ProgressEngine, IsNotWokenForAGroupWithoutTasks) {
  FakeComm withTask;
  FakeComm without;
  FakeTask task;
  const auto engine = makeEngine();
  const auto group = makeGroup(*engine, withTask);
  const auto empty = makeGroup(*engine, without);
  ASSERT_TRUE(group->add(&task).ok());
  ASSERT_TRUE(eventually([&] { return asleep(*engine); }));
  const EngineCounters before = engine->counters();
  for (int i = 0; i < 100; ++i) {
    empty->hold();
    empty->release();
  }
  std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(engine->counters().rounds, before.rounds);
  group->remove(&task);
}

TEST(ProgressEngine, FindsATaskThatIsAddedToAHeldGroup) {
  FakeComm comm;
  FakeTask first;
  FakeTask second;
  const auto engine = makeEngine();
  const auto group = makeGroup(*engine, comm);
  ASSERT_TRUE(group->add(&first).ok());
  group->remove(&first);
  ASSERT_TRUE(eventually([&] { return asleep(*engine); }));
  group->hold();
  second.posted = 1;
  ASSERT_TRUE(group->add(&second).ok());
  EXPECT_TRUE(eventually([&] { return second.done.load() == 1; }));
  group->release();
  group->remove(&second);
}

TEST(ProgressEngine, StaysWhereTheFirstWantedIt) {
  cpu_set_t mine;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(mine), &mine), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &mine)) CPU_SET(i, &one);
  }
  FakeComm comm;
  FakeTask task;
  std::atomic<int> processors{0};
  task.during = [&] {
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof(set), &set) == 0) processors = CPU_EQUAL(&set, &one) ? 1 : -1;
  };
  const auto engine = makeEngine();
  engine->runOn(one);
  engine->runOn(mine);
  const auto group = makeGroup(*engine, comm);
  ASSERT_TRUE(group->add(&task).ok());
  engine->runOn(mine);
  EXPECT_TRUE(eventually([&] { return processors.load() != 0; }));
  EXPECT_EQ(processors.load(), 1);
  group->remove(&task);
}

TEST(ProgressEngine, BindsItsThreadWhereItIsTold) {
  cpu_set_t mine;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(mine), &mine), 0);
  int last = 0;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &mine)) last = i;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  FakeComm comm;
  FakeTask task;
  std::atomic<int> processors{0};
  std::atomic<bool> right{false};
  task.during = [&] {
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof(set), &set) == 0) right = CPU_ISSET(last, &set);
    processors = CPU_COUNT(&set);
  };
  const auto engine = makeEngine({.processors = one});
  const auto group = makeGroup(*engine, comm);
  ASSERT_TRUE(group->add(&task).ok());
  EXPECT_TRUE(eventually([&] { return processors.load() == 1; }));
  EXPECT_TRUE(right.load());
  group->remove(&task);
}

TEST(ProgressEngine, RefusesPausesWithoutLengthAndGroupsThatCannotTell) {
  test::expectLog("some time");
  Patience patience;
  patience.shortestPause = std::chrono::nanoseconds(0);
  EXPECT_EQ(ProgressEngine::create("NCCL Progress 0", {.patience = patience}).status().code(), ncclInternalError);
  test::expectLog("cannot tell");
  EXPECT_EQ(makeEngine()->group({}).status().code(), ncclInternalError);
}

}  // namespace
}  // namespace tutti
