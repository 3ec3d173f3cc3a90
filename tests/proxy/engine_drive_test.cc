#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <thread>
#include <vector>

#include "proxy/engine.h"
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

/// Drives until `what` holds; false after ten seconds.
bool driveUntil(ProgressEngine& engine, const std::function<bool()>& what) {
  return eventually([&] {
    engine.drive();
    return what();
  });
}

TEST(ProgressEngineDrive, DoesNothingWithoutAnActiveGroup) {
  FakeComm comm;
  FakeTask task;
  const auto engine = makeEngine();
  EXPECT_FALSE(engine->drive());
  const auto group = makeGroup(*engine, comm);
  ASSERT_TRUE(group->add(&task).ok());
  ASSERT_TRUE(eventually([&] { return asleep(*engine); }));
  EXPECT_FALSE(engine->drive());
  engine->leave();
  EXPECT_EQ(engine->counters().drives, 0U);
  EXPECT_TRUE(eventually([&] { return asleep(*engine); })) << "add() may have woken it once more";
  group->remove(&task);
}

TEST(ProgressEngineDrive, DoesWhatIsPostedOnTheCallingThread) {
  FakeComm comm;
  FakeTask task;
  std::atomic<std::uint64_t> here{0};
  const auto engine = makeEngine();
  const auto group = makeGroup(*engine, comm);
  task.during = [&, self = ::pthread_self()] {
    if (::pthread_equal(self, ::pthread_self()) != 0 && task.done.load() != task.posted.load()) here.fetch_add(1);
  };
  ASSERT_TRUE(group->add(&task).ok());
  group->hold();
  EXPECT_TRUE(driveUntil(*engine, [&] {
    task.posted.fetch_add(1);
    return here.load() >= 100;
  }));
  EXPECT_GT(engine->counters().drives, 0U);
  group->release();
  group->remove(&task);
}

TEST(ProgressEngineDrive, LetsTheEnginesThreadNap) {
  FakeComm comm;
  FakeTask task;
  const auto engine = makeEngine();
  const auto group = makeGroup(*engine, comm);
  ASSERT_TRUE(group->add(&task).ok());
  group->hold();
  EXPECT_TRUE(driveUntil(*engine, [&] { return engine->counters().naps >= 20; }));
  group->release();
  group->remove(&task);
}

TEST(ProgressEngineDrive, LeavesTheWorkToTheEnginesThreadWhenNobodyDrivesAnyMore) {
  FakeComm comm;
  FakeTask task;
  const auto engine = makeEngine();
  const auto group = makeGroup(*engine, comm);
  ASSERT_TRUE(group->add(&task).ok());
  group->hold();
  for (int i = 0; i < 5; ++i) {
    const auto naps = engine->counters().naps;
    ASSERT_TRUE(driveUntil(*engine, [&] { return engine->counters().naps >= naps + 5; }));
    task.posted.fetch_add(1);
    EXPECT_TRUE(eventually([&] { return task.done.load() == task.posted.load(); }));
  }
  group->release();
  group->remove(&task);
}

TEST(ProgressEngineDrive, WakesTheEnginesThreadForWhatOnlyARoundCanFinish) {
  FakeComm comm;
  FakeTask task;
  const auto engine = makeEngine();
  const auto group = makeGroup(*engine, comm);
  ASSERT_TRUE(group->add(&task).ok());
  group->hold();
  task.isQuiet = false;
  const auto rounds = engine->counters().rounds;
  EXPECT_TRUE(driveUntil(*engine, [&] {
    engine->leave();
    return engine->counters().rounds > rounds + 10;
  })) << "naps end, though somebody drives";
  group->release();
  task.isQuiet = true;
  group->remove(&task);
}

TEST(ProgressEngineDrive, NeitherWaitsForARoundNorBeginsOneWithinIt) {
  FakeComm comm;
  FakeTask task;
  std::atomic<bool> within{false};
  std::atomic<bool> mayEnd{false};
  std::atomic<bool> droveWithin{false};
  const auto engine = makeEngine();
  const auto group = makeGroup(*engine, comm);
  task.during = [&] {
    if (engine->drive()) droveWithin.store(true);
    engine->leave();
    within.store(true);
    while (!mayEnd.load()) std::this_thread::yield();
  };
  ASSERT_TRUE(group->add(&task).ok());
  ASSERT_TRUE(eventually([&] { return within.load(); }));
  const auto drives = engine->counters().drives;
  EXPECT_FALSE(engine->drive());
  engine->leave();
  EXPECT_EQ(engine->counters().drives, drives);
  mayEnd.store(true);
  EXPECT_FALSE(droveWithin.load());
  group->remove(&task);
}

TEST(ProgressEngineDrive, LeavesFailuresToTheEnginesThread) {
  FakeComm comm;
  FakeTask task;
  std::atomic<bool> toldHere{false};
  GroupHooks hooks = comm.hooks();
  hooks.failed = [&, self = ::pthread_self(), told = hooks.failed](Status why) {
    toldHere.store(::pthread_equal(self, ::pthread_self()) != 0);
    told(why);
  };
  const auto engine = makeEngine();
  const auto group = engine->group(hooks).value();
  ASSERT_TRUE(group->add(&task).ok());
  group->hold();
  ASSERT_TRUE(driveUntil(*engine, [&] { return engine->counters().naps >= 5; }));
  task.error = ncclSystemError;
  EXPECT_TRUE(driveUntil(*engine, [&] { return comm.failures.load() == 1; }));
  EXPECT_FALSE(toldHere.load());
  EXPECT_TRUE(group->dead());
  const auto turns = task.turns.load();
  for (int i = 0; i < 10; ++i) engine->drive();
  EXPECT_EQ(task.turns.load(), turns);
  EXPECT_EQ(comm.failures.load(), 1);
  group->release();
  group->remove(&task);
}

TEST(ProgressEngineDrive, MayBeCalledByManyThreadsWhileGroupsComeAndGo) {
  const auto engine = makeEngine({.processors = {}, .patience = test::hasty()});
  std::atomic<bool> over{false};
  std::vector<std::thread> drivers;
  for (int i = 0; i < 3; ++i) {
    drivers.emplace_back([&] {
      while (!over.load()) {
        engine->drive();
        engine->leave();
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    FakeComm comm;
    FakeTask task;
    const auto group = makeGroup(*engine, comm);
    ASSERT_TRUE(group->add(&task).ok());
    group->hold();
    task.posted.store(20);
    EXPECT_TRUE(eventually([&] { return task.done.load() == 20; }));
    group->release();
    group->remove(&task);
  }
  over.store(true);
  for (std::thread& driver : drivers) driver.join();
  EXPECT_TRUE(eventually([&] { return asleep(*engine); })) << "nobody is active, so the thread sleeps without an end";
}

}  // namespace
}  // namespace tutti
