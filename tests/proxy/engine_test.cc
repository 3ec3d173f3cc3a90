#include "proxy/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>
#include <thread>

#include "proxy/fakes.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

TEST(ProgressEngine, StartsItsThreadWithTheFirstTask) {
  OneTask one;
  one.group->hold();
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(one.engine->counters().rounds, 0U);
  one.add();
  EXPECT_TRUE(eventually([&] { return one.task.turns.load() > 1; }));
  one.group->release();
}

TEST(ProgressEngine, DoesWhatIsPostedWhileHeld) {
  OneTask one;
  one.addHeld();
  for (int i = 0; i < 100; ++i) {
    one.task.posted.fetch_add(1);
    EXPECT_TRUE(eventually([&] { return one.task.done.load() == one.task.posted.load(); }));
  }
}

TEST(ProgressEngine, SleepsWithoutTakingProcessorTimeWhenNothingIsUnderWay) {
  OneTask one;
  one.add();
  ASSERT_TRUE(one.fallsAsleep());
  std::this_thread::sleep_for(milliseconds(20));
  const auto before = one.task.threadTime();
  const proxy::EngineCounters counters = one.engine->counters();
  std::this_thread::sleep_for(milliseconds(500));
  EXPECT_LT(one.task.threadTime() - before, milliseconds(2));
  EXPECT_EQ(one.engine->counters().rounds, counters.rounds);
}

TEST(ProgressEngine, TakesLittleProcessorTimeWhileKernelsNeedNothing) {
  OneTask one;
  one.comm.running = 1;
  one.add();
  ASSERT_TRUE(eventually([&] { return one.engine->counters().pauses > 20; }));
  const auto before = one.task.threadTime();
  std::this_thread::sleep_for(milliseconds(400));
  EXPECT_FALSE(asleep(*one.engine));
  EXPECT_LT(one.task.threadTime() - before, milliseconds(200));
}

TEST(ProgressEngine, IsWokenByAHoldWithinAMoment) {
  OneTask one;
  one.add();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(one.fallsAsleep());
    const auto turns = one.task.turns.load();
    one.group->hold();
    EXPECT_TRUE(eventually([&] { return one.task.turns.load() > turns; }));
    one.group->release();
  }
  EXPECT_GE(one.engine->counters().wakeUps, 20U);
}

TEST(ProgressEngine, StaysUpUntilTheTasksAreQuiet) {
  OneTask one({.backoff = hasty()});
  one.task.isQuiet = false;
  one.add();
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(asleep(*one.engine));
  EXPECT_EQ(one.engine->counters().questions, 0U) << "the driver is asked only where the answer matters";
  one.task.isQuiet = true;
  EXPECT_TRUE(one.fallsAsleep());
}

TEST(ProgressEngine, TellsWhichGroupsRest) {
  OneTask one({.backoff = hasty()});
  EXPECT_TRUE(one.group->rests()) << "it has no task";
  one.task.isQuiet = false;
  one.add();
  EXPECT_FALSE(one.group->rests());
  one.task.isQuiet = true;
  EXPECT_TRUE(eventually([&] { return one.group->rests(); }));
  one.group->hold();
  EXPECT_FALSE(one.group->rests());
  one.group->release();
  EXPECT_TRUE(eventually([&] { return one.group->rests(); }));
}

TEST(ProgressEngine, StaysUpWhileKernelsRun) {
  OneTask one({.backoff = hasty()});
  one.comm.running = 1;
  one.add();
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(asleep(*one.engine));
  one.comm.running = 0;
  EXPECT_TRUE(one.fallsAsleep());
}

/// A kernel may post its last step after the tasks were looked at and end before the driver is asked.
TEST(ProgressEngine, LooksOnceMoreAfterTheDriverSaidThatNothingRuns) {
  std::atomic<bool> posted{false};
  OneTask one({.backoff = hasty()}, [&](OneTask& self, proxy::GroupHooks& hooks) {
    hooks.busy = [&] {
      if (!posted.exchange(true)) self.task.posted.fetch_add(1);
      return false;
    };
  });
  one.add();
  EXPECT_TRUE(one.fallsAsleep());
  EXPECT_EQ(one.task.done.load(), 1U);
}

/// A launch that falls beside the question or between it and the decision is covered by nobody's answer.
class LaunchBeside : public testing::TestWithParam<const char*> {};

TEST_P(LaunchBeside, IsNotSleptOver) {
  const bool besideTheQuestion = std::string_view(GetParam()) == "Question";
  std::atomic<int> answers{0};
  std::atomic<bool> launched{false};
  const auto launch = [&](OneTask& of) {
    if (launched.exchange(true)) return;
    of.group->hold();
    of.comm.running = 1;
    of.group->release();
  };
  OneTask one({.backoff = hasty()}, [&](OneTask& self, proxy::GroupHooks& hooks) {
    hooks.busy = [&] {
      const bool answer = self.comm.running.load() > 0;
      if (besideTheQuestion) launch(self);
      answers.fetch_add(1);
      return answer;
    };
  });
  one.task.whenAsked = [&] {
    if (answers.load() == 1) launch(one);
  };
  one.add();
  ASSERT_TRUE(eventually([&] { return launched.load(); }));
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_FALSE(asleep(*one.engine));
  one.task.posted.fetch_add(1);
  EXPECT_TRUE(eventually([&] { return one.task.done.load() == 1; }));
  one.comm.running = 0;
  EXPECT_TRUE(one.fallsAsleep());
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
  const proxy::EngineCounters before = engine->counters();
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
  cpu_set_t single;
  CPU_ZERO(&single);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&single) == 0; ++i) {
    if (CPU_ISSET(i, &mine)) CPU_SET(i, &single);
  }
  std::atomic<int> processors{0};
  OneTask one;
  one.task.during = [&] {
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof(set), &set) == 0) processors = CPU_EQUAL(&set, &single) ? 1 : -1;
  };
  one.engine->runOn(single);
  one.engine->runOn(mine);
  one.add();
  one.engine->runOn(mine);
  EXPECT_TRUE(eventually([&] { return processors.load() != 0; }));
  EXPECT_EQ(processors.load(), 1);
}

TEST(ProgressEngine, BindsItsThreadWhereItIsTold) {
  cpu_set_t mine;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(mine), &mine), 0);
  int last = 0;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &mine)) last = i;
  }
  cpu_set_t single;
  CPU_ZERO(&single);
  CPU_SET(last, &single);
  std::atomic<int> processors{0};
  std::atomic<bool> right{false};
  OneTask one({.processors = single});
  one.task.during = [&] {
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof(set), &set) == 0) right = CPU_ISSET(last, &set);
    processors = CPU_COUNT(&set);
  };
  one.add();
  EXPECT_TRUE(eventually([&] { return processors.load() == 1; }));
  EXPECT_TRUE(right.load());
}

TEST(ProgressEngine, RefusesPausesWithoutLengthAndGroupsThatCannotTell) {
  expectLog("some time");
  proxy::BackoffPolicy backoff;
  backoff.shortestPause = std::chrono::nanoseconds(0);
  EXPECT_EQ(proxy::ProgressEngine::create("NCCL Progress 0", {.backoff = backoff}).status().code(), ncclInternalError);
  expectLog("cannot tell");
  EXPECT_EQ(makeEngine()->group({}).status().code(), ncclInternalError);
}

}  // namespace
}  // namespace tutti::test
