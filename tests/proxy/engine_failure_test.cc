// Errors and aborts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "base/log.h"
#include "proxy/engine.h"
#include "proxy/fakes.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;

TEST(ProgressEngine, TellsTheFirstErrorOfAGroupOnceAndDrivesTheOthers) {
  expectLog("link is down");
  FakeComm broken;
  FakeComm sound;
  FakeTask bad("send to rank 3 by NET/Fake/0");
  FakeTask alsoBad;
  FakeTask good;
  std::atomic<bool> linkIsDown{false};
  const auto engine = makeEngine();
  const auto one = makeGroup(*engine, broken);
  const auto two = makeGroup(*engine, sound);
  bad.during = [&] {  // both fail in one round, this one first
    if (!linkIsDown) return;
    fail(ncclSystemError, "the link is down").ignore();
    alsoBad.error = bad.error = ncclSystemError;
  };
  ASSERT_TRUE(one->add(&bad).ok());
  ASSERT_TRUE(one->add(&alsoBad).ok());
  ASSERT_TRUE(two->add(&good).ok());
  one->hold();
  two->hold();
  ASSERT_TRUE(eventually([&] { return bad.turns.load() > 0; }));
  linkIsDown = true;
  ASSERT_TRUE(eventually([&] { return broken.failures.load() > 0; }));
  EXPECT_THAT(broken.failureText(), HasSubstr("the link is down"));
  EXPECT_TRUE(one->dead());
  const auto turns = bad.turns.load() + alsoBad.turns.load();
  good.posted = 100;
  EXPECT_TRUE(eventually([&] { return good.done.load() == 100; }));
  EXPECT_EQ(bad.turns.load() + alsoBad.turns.load(), turns);
  EXPECT_EQ(broken.failures.load(), 1);
  EXPECT_EQ(sound.failures.load(), 0);
  EXPECT_FALSE(two->dead());
  one->release();
  two->release();
  one->remove(&bad);
  one->remove(&alsoBad);
  two->remove(&good);
}

TEST(ProgressEngine, TurnsAnExceptionOfATaskIntoTheGroupsError) {
  expectLog("out of luck");
  OneTask one;
  one.task.during = [] { throw std::runtime_error("out of luck"); };
  one.add();
  EXPECT_TRUE(eventually([&] { return one.comm.failures.load() == 1; }));
  EXPECT_THAT(one.comm.failureText(), HasSubstr("out of luck"));
  EXPECT_TRUE(one.fallsAsleep());
}

TEST(ProgressEngine, LeavesTheTasksOfAnAbortedCommunicatorAlone) {
  OneTask one;
  one.task.isQuiet = false;
  one.comm.running = 1;
  one.addHeld();
  ASSERT_TRUE(eventually([&] { return one.task.turns.load() > 0; }));
  one.comm.isAborted = true;
  EXPECT_TRUE(one.fallsAsleep()) << "an aborted group is not active";
  const auto turns = one.task.turns.load();
  const auto rounds = one.engine->counters().rounds;
  one.group->hold();
  FakeTask late;
  EXPECT_TRUE(one.group->add(&late).ok());
  EXPECT_TRUE(eventually([&] { return one.engine->counters().rounds > rounds && asleep(*one.engine); }));
  EXPECT_EQ(one.task.turns.load(), turns);
  EXPECT_EQ(late.turns.load(), 0U);
  EXPECT_EQ(one.comm.failures.load(), 0);
  one.group->release();
  one.group->remove(&late);
}

}  // namespace
}  // namespace tutti::test
