#include "comm/launch/launch_marks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "gpu/driver.h"
#include "gpu/driver_calls.h"
#include "gpu/stream.h"

namespace tutti::comm {
namespace {

using State = LaunchMarks::Front::State;

/// Holds a stream until let go, and lets go when the test ends.
class Barred {
 public:
  explicit Barred(CUstream stream) { EXPECT_EQ(DRIVER_CALL(cuLaunchHostFunc)(stream, wait, &open_), CUDA_SUCCESS); }
  Barred(const Barred&) = delete;
  ~Barred() { open(); }
  void open() { open_.store(true); }

 private:
  static void wait(void* open) {
    while (!static_cast<std::atomic<bool>*>(open)->load()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  std::atomic<bool> open_{false};
};

/// What is launched here is a host function that waits.
class LaunchMarked : public testing::Test {
 protected:
  void SetUp() override {
    const auto loaded = gpu::loadDriver();
    ASSERT_TRUE(loaded.ok());
    device_ = gpu::Device::create(*loaded.value(), 0).value();
    guard_ = std::make_unique<gpu::ContextGuard>(device_->enter().value());
    for (auto& stream : streams_) stream = std::make_unique<gpu::Stream>(gpu::Stream::create(*device_).value());
    marks_ = std::make_unique<LaunchMarks>(*device_);
    other_ = std::make_unique<LaunchMarks>(*device_);
  }
  CUstream first() const { return streams_[0]->get(); }
  CUstream second() const { return streams_[1]->get(); }
  void sync(CUstream stream) const { EXPECT_TRUE(gpu::waitStream(*device_, stream, nullptr).ok()); }
  std::unique_ptr<Barred> launch(LaunchMarks& marks, CUstream stream, std::uint64_t number) const {
    marks.begin(stream, {number, 3, false});
    auto barred = std::make_unique<Barred>(stream);
    marks.end();
    return barred;
  }
  void expectFront(State state, std::uint64_t number, const LaunchMarks& marks) const {
    LaunchMarks::Front front = marks.front();
    // What the device has begun with it says a moment later.
    for (int i = 0; i < 5000 && (front.state != state || front.call.number != number); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      front = marks.front();
    }
    EXPECT_EQ(front.state, state);
    EXPECT_EQ(front.call.number, number);
  }

  std::unique_ptr<gpu::Device> device_;
  std::unique_ptr<gpu::ContextGuard> guard_;
  std::unique_ptr<gpu::Stream> streams_[2];
  std::unique_ptr<LaunchMarks> marks_;
  std::unique_ptr<LaunchMarks> other_;
};

TEST_F(LaunchMarked, TheFirstThatHasNotEndedIsToldAndWhetherItHasBegun) {
  expectFront(State::Ended, 0, *marks_);
  const auto one = launch(*marks_, first(), 11);
  const auto two = launch(*marks_, first(), 12);
  expectFront(State::Begun, 11, *marks_);
  EXPECT_EQ(marks_->front().call.function, 3);
  EXPECT_EQ(marks_->front().stream, first());
  EXPECT_EQ(marks_->last().number, 12U);
  one->open();
  expectFront(State::Begun, 12, *marks_);
  two->open();
  sync(first());
  expectFront(State::Ended, 0, *marks_);
}

TEST_F(LaunchMarked, WhatIsBehindAnotherCommunicatorsHasNotBegun) {
  const auto ahead = launch(*other_, first(), 5);
  const auto behind = launch(*marks_, first(), 1);
  expectFront(State::Begun, 5, *other_);
  expectFront(State::Queued, 1, *marks_);
  EXPECT_LT(other_->front().order, marks_->front().order);
  ahead->open();
  expectFront(State::Begun, 1, *marks_);
  behind->open();
  sync(first());
}

TEST_F(LaunchMarked, WhatFollowsOnAnotherStreamIsNotTakenForTheFront) {
  const auto one = launch(*marks_, first(), 1);
  const auto two = launch(*marks_, second(), 2);
  expectFront(State::Begun, 1, *marks_);
  one->open();
  expectFront(State::Begun, 2, *marks_);
  two->open();
  sync(second());
}

TEST_F(LaunchMarked, ACommunicatorThatIsAloneOnItsDeviceMarksNothing) {
  other_.reset();
  EXPECT_FALSE(marks_->severalHere());
  auto alone = launch(*marks_, first(), 1);
  EXPECT_EQ(marks_->front().state, State::Unknown);
  EXPECT_EQ(marks_->last().number, 1U);
  // Of one behind it, which is marked, nobody can tell whether it is that which is in front.
  other_ = std::make_unique<LaunchMarks>(*device_);
  const auto marked = launch(*marks_, first(), 2);
  EXPECT_EQ(marks_->front().state, State::Unknown);
  alone->open();
  expectFront(State::Begun, 2, *marks_);
  marked->open();
  sync(first());
}

TEST_F(LaunchMarked, OfALongQueueTheFirstOnesKeepTheirMarks) {
  const auto ahead = launch(*other_, first(), 1);
  for (std::uint64_t number = 1; number <= 500; ++number) {
    marks_->begin(first(), {number, 0, false});
    marks_->end();
  }
  expectFront(State::Queued, 1, *marks_);
  ahead->open();
  sync(first());
  // What has ended leaves its place.
  const auto again = launch(*other_, first(), 2);
  const auto last = launch(*marks_, first(), 501);
  EXPECT_EQ(marks_->front().state, State::Unknown) << "the one before it had no mark";
  const auto next = launch(*marks_, first(), 502);
  again->open();
  last->open();
  expectFront(State::Begun, 502, *marks_);
  next->open();
  sync(first());
  expectFront(State::Ended, 0, *marks_);
}

TEST_F(LaunchMarked, WithGraphsNobodyIsTakenForQueued) {
  marks_->captured();
  const auto ahead = launch(*other_, first(), 1);
  const auto behind = launch(*marks_, first(), 1);
  EXPECT_EQ(marks_->front().state, State::Unknown);
  ahead->open();
  expectFront(State::Begun, 1, *marks_);
  behind->open();
  sync(first());
}

}  // namespace
}  // namespace tutti::comm
