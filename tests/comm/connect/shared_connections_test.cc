#include "comm/connect/shared_connections.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/ranks/abort.h"
#include "comm/connect/driven_end.h"
#include "gpu/context.h"
#include "proxy/group.h"
#include "support/log_capture.h"

namespace tutti::comm {
namespace {

using test::DrivenEnd;
using test::eventually;
using test::FakeComm;
using test::FakeTask;

/// One connection that a family shares, and a member with a group of its own.
struct SharedConnectionsDriven : testing::Test {
  SharedConnectionsDriven() {
    connections.driveBy(test::makeGroup(*engine, nobody));
    EXPECT_TRUE(connections.add({.peer = 1}, {.endpoint = end, .fallback = {}, .transport = 2}).ok());
    EXPECT_TRUE(eventually([this] { return test::asleep(*engine); }));
  }
  /// Something that the kernels of a member that has ended have left to be sent.
  void leaveBehind(int steps) {
    task.isQuiet = false;
    task.posted.fetch_add(static_cast<std::uint64_t>(steps));
  }

  FakeComm nobody, comm;
  std::shared_ptr<proxy::ProgressEngine> engine = test::makeEngine({.processors = {}, .backoff = test::hasty()});
  std::shared_ptr<DrivenEnd> end = std::make_shared<DrivenEnd>();
  FakeTask& task = end->work;
  SharedConnections connections;
};

TEST_F(SharedConnectionsDriven, FinishWhatAMemberLeavesBehind) {
  leaveBehind(100);
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(task.done.load(), 0U) << "nobody has said so yet";
  connections.tend();
  EXPECT_FALSE(connections.rests());
  EXPECT_TRUE(eventually([this] { return task.done.load() == 100; }));
  EXPECT_FALSE(connections.rests()) << "the network has not delivered it";
  task.isQuiet = true;
  EXPECT_TRUE(eventually([this] { return connections.rests(); }));
}

TEST_F(SharedConnectionsDriven, AreLeftAloneByEveryGroupOnceTheyAreDetached) {
  auto group = test::makeGroup(*engine, comm);
  connections.alsoDrivenBy(group.get());
  ASSERT_TRUE(group->add(&task).ok());
  group->hold();
  connections.tend();
  EXPECT_TRUE(eventually([this, before = task.turns.load()] { return task.turns.load() > before; }));
  connections.detach();
  const std::uint64_t turns = task.turns.load();
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(task.turns.load(), turns);
  group->release();
  connections.notDrivenBy(group.get());
  group.reset();
  connections.close(device::Direction::Send);
  EXPECT_EQ(connections.size(), 0U);
}

TEST_F(SharedConnectionsDriven, DriveNoConnectionThatAnotherOneHasReplaced) {
  const auto other = std::make_shared<DrivenEnd>();
  EXPECT_TRUE(connections.add({.peer = 1}, {.endpoint = other, .fallback = {}, .transport = 2}).ok());
  const std::uint64_t turns = task.turns.load();
  connections.tend();
  EXPECT_TRUE(eventually([&] { return other->work.turns.load() > 0 && test::asleep(*engine); }));
  EXPECT_EQ(task.turns.load(), turns);
}

TEST_F(SharedConnectionsDriven, GoOnSendingWhereOneOfThemFails) {
  const auto other = std::make_shared<DrivenEnd>();
  EXPECT_TRUE(connections.add({.peer = 2}, {.endpoint = other, .fallback = {}, .transport = 2}).ok());
  task.error = ncclRemoteError;
  leaveBehind(1);
  connections.tend();
  EXPECT_TRUE(eventually([this] { return connections.rests(); }));
  other->work.posted = 50;
  connections.tend();
  EXPECT_TRUE(eventually([&] { return other->work.done.load() == 50; }));
  EXPECT_EQ(nobody.failures.load(), 0);
}

TEST_F(SharedConnectionsDriven, LeaveReceiversToWhoUsesThem) {
  const auto receiver = std::make_shared<DrivenEnd>();
  EXPECT_TRUE(connections
                  .add({.peer = 1, .direction = device::Direction::Recv},
                       {.endpoint = receiver, .fallback = {}, .transport = 2})
                  .ok());
  connections.tend();
  EXPECT_TRUE(eventually([this] { return connections.rests(); }));
  EXPECT_EQ(receiver->work.turns.load(), 0U);
}

TEST_F(SharedConnectionsDriven, PartFromOnePeerOrFromAllAndThenReceiversAreDrivenAsWell) {
  const auto receiver = std::make_shared<DrivenEnd>();
  EXPECT_TRUE(connections
                  .add({.peer = 2, .direction = device::Direction::Recv},
                       {.endpoint = receiver, .fallback = {}, .transport = 2})
                  .ok());
  connections.part(1);
  EXPECT_TRUE(task.isParting && !receiver->work.isParting);
  EXPECT_FALSE(connections.parted());
  task.isParting = false;
  EXPECT_TRUE(connections.parted());
  connections.part();
  EXPECT_TRUE(task.isParting && receiver->work.isParting);
  EXPECT_TRUE(eventually([&] { return receiver->work.turns.load() > 0; }));
  task.isParting = false;
  EXPECT_FALSE(connections.parted());
  receiver->work.isParting = false;
  EXPECT_TRUE(connections.parted());
}

TEST_F(SharedConnectionsDriven, HoldNobodyUpWhileTheyAreWaitedFor) {
  const auto device = gpu::Device::create(*gpu::loadDriver().value(), 2).value();
  leaveBehind(1);  // and nobody is told
  Abort abort;
  std::atomic<bool> over{false};
  Status settled;
  std::thread waiting([&] {
    const auto guard = device->enter();
    settled = connections.awaitTaken(*device, "this test", milliseconds(60'000), abort);
    over = true;
  });
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_TRUE(connections.rests());
  EXPECT_EQ(connections.find({.peer = 1}).endpoint, end);
  EXPECT_FALSE(over.load());
  abort.raise(Status(ncclInvalidUsage), "enough");
  waiting.join();
  EXPECT_EQ(settled.code(), ncclInvalidUsage);
}

TEST(SharedConnections, TakeNothingThatNobodyDrives) {
  SharedConnections connections;
  test::expectLog("Nobody drives driven");
  EXPECT_EQ(
      connections.add({.peer = 1}, {.endpoint = std::make_shared<DrivenEnd>(), .fallback = {}, .transport = 2}).code(),
      ncclInternalError);
}

}  // namespace
}  // namespace tutti::comm
