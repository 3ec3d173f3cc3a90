// Many tasks, groups and callers at a time.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "proxy/engine.h"
#include "proxy/fakes.h"

namespace tutti::test {
namespace {

TEST(ProgressEngine, LetsNoTaskWithEndlessWorkStarveOthers) {
  FakeComm comms[2];
  FakeTask greedy;
  FakeTask modest;
  FakeTask elsewhere;
  greedy.posted = ~std::uint64_t{0};
  const auto engine = makeEngine();
  const auto one = makeGroup(*engine, comms[0]);
  const auto two = makeGroup(*engine, comms[1]);
  modest.posted = elsewhere.posted = 1'000;
  one->hold();
  two->hold();
  ASSERT_TRUE(one->add(&greedy).ok());
  ASSERT_TRUE(one->add(&modest).ok());
  ASSERT_TRUE(two->add(&elsewhere).ok());
  EXPECT_TRUE(eventually([&] { return modest.done.load() == 1'000 && elsewhere.done.load() == 1'000; }));
  // A turn each; read in this order, the others' counts cannot fall behind by more than the turn under way.
  const auto modestBefore = modest.turns.load();
  const auto elsewhereBefore = elsewhere.turns.load();
  const auto before = greedy.turns.load();
  ASSERT_TRUE(eventually([&] { return greedy.turns.load() > before + 1'000; }));
  const auto turns = greedy.turns.load() - before;
  EXPECT_GE(modest.turns.load() - modestBefore + 1, turns);
  EXPECT_GE(elsewhere.turns.load() - elsewhereBefore + 1, turns);
  one->remove(&greedy);
  one->remove(&modest);
  two->remove(&elsewhere);
  one->release();
  two->release();
}

TEST(ProgressEngine, TouchesNoTaskAfterItsRemoval) {
  FakeComm comm;
  FakeTask steady;
  const auto engine = makeEngine({.backoff = hasty()});
  const auto group = makeGroup(*engine, comm);
  group->hold();
  steady.posted = ~std::uint64_t{0};
  ASSERT_TRUE(group->add(&steady).ok());
  for (int i = 0; i < 200; ++i) {
    auto task = std::make_unique<FakeTask>();
    std::atomic<bool> inside{false};
    task->during = [&inside] {
      inside = true;
      std::this_thread::yield();
      inside = false;
    };
    ASSERT_TRUE(group->add(task.get()).ok());
    if (i % 2 == 0) {
      ASSERT_TRUE(eventually([&] { return task->turns.load() > 0; }));
    }
    group->remove(task.get());
    ASSERT_FALSE(inside.load());
    const auto turns = task->turns.load();
    if (i % 20 == 0) std::this_thread::sleep_for(milliseconds(1));
    ASSERT_EQ(task->turns.load(), turns);
    task.reset();  // the sanitizers see any later touch
  }
  group->remove(&steady);
  group->release();
}

TEST(ProgressEngine, RemovesFromASleepingEngineAtOnce) {
  FakeComm comm;
  std::vector<FakeTask> tasks(50);
  const auto engine = makeEngine();
  const auto group = makeGroup(*engine, comm);
  for (auto& task : tasks) ASSERT_TRUE(group->add(&task).ok());
  ASSERT_TRUE(eventually([&] { return asleep(*engine); }));
  const auto rounds = engine->counters().rounds;
  for (auto& task : tasks) group->remove(&task);
  EXPECT_EQ(engine->counters().rounds, rounds);
}

TEST(ProgressEngine, DrivesAThousandGroupsAndVisitsOnlyActiveOnes) {
  constexpr int kGroups = 1'000;
  FakeComm comm;
  std::vector<FakeTask> tasks(kGroups);
  const auto engine = makeEngine();
  std::vector<std::unique_ptr<proxy::ProgressGroup>> groups;
  for (auto& task : tasks) {
    groups.push_back(makeGroup(*engine, comm));
    task.posted = 3;
    ASSERT_TRUE(groups.back()->add(&task).ok());
  }
  for (auto& task : tasks) {
    ASSERT_TRUE(eventually([&] { return task.done.load() == 3; }));
  }
  ASSERT_TRUE(eventually([&] { return asleep(*engine); }));
  const auto others = tasks[0].turns.load();
  groups[500]->hold();
  tasks[500].posted = 4;
  EXPECT_TRUE(eventually([&] { return tasks[500].done.load() == 4; }));
  groups[500]->release();
  EXPECT_EQ(tasks[0].turns.load(), others);
  for (int i = 0; i < kGroups; ++i) groups[i]->remove(&tasks[i]);
}

TEST(ProgressEngine, EndsWithItsLastGroup) {
  FakeComm comm;
  FakeTask task;
  auto engine = makeEngine();
  auto group = makeGroup(*engine, comm);
  std::weak_ptr<proxy::ProgressEngine> watched = engine;
  ASSERT_TRUE(group->add(&task).ok());
  engine.reset();
  EXPECT_FALSE(watched.expired());
  group->hold();
  task.posted = 1;
  EXPECT_TRUE(eventually([&] { return task.done.load() == 1; }));
  group->release();
  group->remove(&task);
  group.reset();
  EXPECT_TRUE(watched.expired());
}

/// Groups come and go while others are woken: the stack of woken groups must lose none of them.
TEST(ProgressEngine, LosesNoWakeUpWhenOtherGroupsEnd) {
  OneTask one({.backoff = hasty()});
  one.add();
  std::atomic<bool> ended{false};
  std::thread others([&] {
    while (!ended.load()) {
      FakeComm shortLived;
      FakeTask passing;
      const auto other = makeGroup(*one.engine, shortLived);
      if (!other->add(&passing).ok()) return;
      other->hold();
      other->release();
      other->remove(&passing);
    }
  });
  const Deadline end = Deadline::in(milliseconds(300));
  while (!end.expired()) {
    one.group->hold();
    one.task.posted.fetch_add(1);
    ASSERT_TRUE(eventually([&] { return one.task.done.load() == one.task.posted.load(); }));
    one.group->release();
  }
  ended = true;
  others.join();
}

/// What a launch does: hold, launch, let go; the kernel posts its steps later and ends.
void launchAndWait(proxy::ProgressGroup& group, FakeComm& comm, FakeTask& task, unsigned random) {
  group.hold();
  comm.running.fetch_add(1);
  group.release();
  for (unsigned i = 0; i < random % 4; ++i) std::this_thread::yield();
  const std::uint64_t last = task.posted.fetch_add(1 + random % 3) + 1 + random % 3;
  comm.running.fetch_sub(1);
  ASSERT_TRUE(eventually([&] { return task.done.load() >= last; })) << "a step was left behind";
}

TEST(ProgressEngine, LeavesNoStepBehindInAStormOfLaunches) {
  constexpr int kThreads = 4;
  std::vector<FakeComm> comms(kThreads / 2);
  std::vector<FakeTask> tasks(kThreads / 2);
  const auto engine = makeEngine({.backoff = hasty()});
  std::vector<std::unique_ptr<proxy::ProgressGroup>> groups;
  for (auto& comm : comms) groups.push_back(makeGroup(*engine, comm));
  for (std::size_t i = 0; i < groups.size(); ++i) ASSERT_TRUE(groups[i]->add(&tasks[i]).ok());
  // Until it has slept meanwhile, which a slow machine gives it less time for.
  const Deadline end = Deadline::in(milliseconds(500)), last = Deadline::in(std::chrono::seconds(20));
  const auto over = [&] { return last.expired() || (end.expired() && engine->counters().wakeUps > 1); };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      unsigned random = t + 1;
      while (!over() && !testing::Test::HasFatalFailure()) {
        random = random * 1664525 + 1013904223;
        launchAndWait(*groups[t / 2], comms[t / 2], tasks[t / 2], random >> 16);
        if ((random >> 8) % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds((random >> 20) % 64));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(eventually([&] { return asleep(*engine); }));
  EXPECT_GT(engine->counters().wakeUps, 1U);
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i]->remove(&tasks[i]);
}

}  // namespace
}  // namespace tutti::test
