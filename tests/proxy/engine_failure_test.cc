// Errors and aborts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "base/log.h"
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
using testing::HasSubstr;

TEST(ProgressEngine, TellsTheFirstErrorOfAGroupOnceAndDrivesTheOthers) {
  test::expectLog("link is down");
  FakeComm broken;
  FakeComm sound;
  FakeTask bad("send to rank 3 by NET/Fake/0");
  FakeTask alsoBad;
  FakeTask good;
  const auto engine = makeEngine();
  const auto one = makeGroup(*engine, broken);
  const auto two = makeGroup(*engine, sound);
  bad.during = [&bad] {
    if (bad.error.load() != ncclSuccess) fail(ncclSystemError, "the link is down").ignore();
  };
  ASSERT_TRUE(one->add(&bad).ok());
  ASSERT_TRUE(one->add(&alsoBad).ok());
  ASSERT_TRUE(two->add(&good).ok());
  one->hold();
  two->hold();
  ASSERT_TRUE(eventually([&] { return bad.turns.load() > 0; }));
  alsoBad.error = bad.error = ncclSystemError;
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
  test::expectLog("out of luck");
  FakeComm comm;
  FakeTask task;
  task.during = [] { throw std::runtime_error("out of luck"); };
  const auto engine = makeEngine();
  const auto group = makeGroup(*engine, comm);
  ASSERT_TRUE(group->add(&task).ok());
  EXPECT_TRUE(eventually([&] { return comm.failures.load() == 1; }));
  EXPECT_THAT(comm.failureText(), HasSubstr("out of luck"));
  EXPECT_TRUE(eventually([&] { return asleep(*engine); }));
  group->remove(&task);
}

TEST(ProgressEngine, LeavesTheTasksOfAnAbortedCommunicatorAlone) {
  FakeComm comm;
  FakeTask task;
  task.isQuiet = false;
  const auto engine = makeEngine();
  const auto group = makeGroup(*engine, comm);
  comm.running = 1;
  group->hold();
  ASSERT_TRUE(group->add(&task).ok());
  ASSERT_TRUE(eventually([&] { return task.turns.load() > 0; }));
  comm.isAborted = true;
  EXPECT_TRUE(eventually([&] { return asleep(*engine); })) << "an aborted group is not active";
  const auto turns = task.turns.load();
  const auto rounds = engine->counters().rounds;
  group->hold();
  FakeTask late;
  EXPECT_TRUE(group->add(&late).ok());
  EXPECT_TRUE(eventually([&] { return engine->counters().rounds > rounds && asleep(*engine); }));
  EXPECT_EQ(task.turns.load(), turns);
  EXPECT_EQ(late.turns.load(), 0U);
  EXPECT_EQ(comm.failures.load(), 0);
  group->release();
  group->release();
  group->remove(&task);
  group->remove(&late);
}

}  // namespace
}  // namespace tutti
