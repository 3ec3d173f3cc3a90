#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "proxy/engine.h"
#include "proxy/fakes.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

/// Drives until `what` holds; false after ten seconds.
bool driveUntil(proxy::ProgressEngine& engine, const std::function<bool()>& what) {
  return eventually([&] {
    engine.drive();
    return what();
  });
}

TEST(ProgressEngineDrive, DoesNothingWithoutAnActiveGroup) {
  OneTask one;
  EXPECT_FALSE(one.engine->drive());
  one.add();
  ASSERT_TRUE(one.fallsAsleep());
  EXPECT_FALSE(one.engine->drive());
  one.engine->leave();
  EXPECT_EQ(one.engine->counters().drives, 0U);
  EXPECT_TRUE(one.fallsAsleep()) << "add() may have woken it once more";
}

TEST(ProgressEngineDrive, DoesWhatIsPostedOnTheCallingThread) {
  std::atomic<std::uint64_t> here{0};
  OneTask one;
  one.task.during = [&, self = ::pthread_self()] {
    const bool does = one.task.done.load() != one.task.posted.load();
    if (::pthread_equal(self, ::pthread_self()) != 0 && does) here.fetch_add(1);
  };
  one.addHeld();
  EXPECT_TRUE(driveUntil(*one.engine, [&] {
    one.task.posted.fetch_add(1);
    return here.load() >= 100;
  }));
  EXPECT_GT(one.engine->counters().drives, 0U);
}

TEST(ProgressEngineDrive, LeavesTheWorkToTheEnginesThreadWhenNobodyDrivesAnyMore) {
  OneTask one;
  one.addHeld();
  for (int i = 0; i < 5; ++i) {
    const auto naps = one.engine->counters().naps;
    ASSERT_TRUE(driveUntil(*one.engine, [&] { return one.engine->counters().naps >= naps + 5; }))
        << "the engine's thread leaves the processor to who drives";
    one.task.posted.fetch_add(1);
    EXPECT_TRUE(eventually([&] { return one.task.done.load() == one.task.posted.load(); }));
  }
}

TEST(ProgressEngineDrive, WakesTheEnginesThreadForWhatOnlyARoundCanFinish) {
  OneTask one;
  one.addHeld();
  one.task.isPressing = true;
  const auto rounds = one.engine->counters().rounds;
  EXPECT_TRUE(driveUntil(*one.engine, [&] {
    one.engine->leave();
    return one.engine->counters().rounds > rounds + 10;
  })) << "naps end, though somebody drives";
}

TEST(ProgressEngineDrive, MakesALastRoundForWhatPresses) {
  std::atomic<std::uint64_t> here{0};
  OneTask one;
  one.task.during = [&, self = ::pthread_self()] {
    if (::pthread_equal(self, ::pthread_self()) == 0 || !one.task.isPressing.exchange(false)) return;
    here.fetch_add(1);
  };
  one.addHeld();
  EXPECT_TRUE(eventually([&] {
    one.task.isPressing = true;
    one.engine->leave();
    return here.load() >= 100;
  }));
}

/// How long so many naps take while somebody drives and leaves all the time, so that a call comes in each of them.
SteadyClock::duration timeOfNaps(proxy::ProgressEngine& engine, std::uint64_t count) {
  const auto before = engine.counters().naps;
  const auto start = SteadyClock::now();
  for (const Deadline end = Deadline::in(std::chrono::seconds(10)); engine.counters().naps < before + count;) {
    if (end.expired()) return {};
    engine.drive();
    engine.leave();
  }
  return SteadyClock::now() - start;
}

TEST(ProgressEngineDrive, LetsTheEnginesThreadNapOverWhatPressesNobody) {
  OneTask one;
  one.addHeld();
  one.task.isQuiet = false;
  EXPECT_GT(timeOfNaps(*one.engine, 50), milliseconds(25)) << "naps were ended";
  one.task.isQuiet = true;
}

TEST(ProgressEngineDrive, LetsTheEnginesThreadNapAlsoIfItComesSecond) {
  OneTask one;
  one.task.during = [first = true]() mutable {
    if (std::exchange(first, false)) std::this_thread::sleep_for(milliseconds(5));
  };
  one.addHeld();
  one.engine->drive();
  EXPECT_GT(timeOfNaps(*one.engine, 20), milliseconds(5)) << "the first naps had no length";
}

TEST(ProgressEngineDrive, NeitherWaitsForARoundNorBeginsOneWithinIt) {
  std::atomic<bool> within{false};
  std::atomic<bool> mayEnd{false};
  std::atomic<bool> droveWithin{false};
  OneTask one;
  one.task.during = [&] {
    if (one.engine->drive()) droveWithin.store(true);
    one.engine->leave();
    within.store(true);
    while (!mayEnd.load()) std::this_thread::yield();
  };
  one.add();
  ASSERT_TRUE(eventually([&] { return within.load(); }));
  const auto drives = one.engine->counters().drives;
  EXPECT_FALSE(one.engine->drive());
  one.engine->leave();
  EXPECT_EQ(one.engine->counters().drives, drives);
  mayEnd.store(true);
  EXPECT_FALSE(droveWithin.load());
}

TEST(ProgressEngineDrive, LeavesFailuresToTheEnginesThread) {
  std::atomic<bool> toldHere{false};
  OneTask one({}, [&](OneTask&, proxy::GroupHooks& hooks) {
    hooks.failed = [&, self = ::pthread_self(), told = hooks.failed](Status why) {
      toldHere.store(::pthread_equal(self, ::pthread_self()) != 0);
      told(why);
    };
  });
  one.addHeld();
  ASSERT_TRUE(driveUntil(*one.engine, [&] { return one.engine->counters().naps >= 5; }));
  one.task.error = ncclSystemError;
  EXPECT_TRUE(driveUntil(*one.engine, [&] { return one.comm.failures.load() == 1; }));
  EXPECT_FALSE(toldHere.load());
  EXPECT_TRUE(one.group->dead());
  const auto turns = one.task.turns.load();
  for (int i = 0; i < 10; ++i) one.engine->drive();
  EXPECT_EQ(one.task.turns.load(), turns);
  EXPECT_EQ(one.comm.failures.load(), 1);
}

TEST(ProgressEngineDrive, MayBeCalledByManyThreadsWhileGroupsComeAndGo) {
  const auto engine = makeEngine({.processors = {}, .backoff = hasty()});
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
}  // namespace tutti::test
