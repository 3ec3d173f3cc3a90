// Which launch is the first that has not ended, where the test writes what kernels would.
#include "comm/launch/launch_marks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "gpu/driver.h"

namespace tutti::comm {
namespace {

using State = LaunchMarks::Front::State;

/// Some kernels that were launched together. On the software GPU host and device address memory alike.
class Kernels {
 public:
  /// A kernel for each entry, which is how many channels it has, from `firstChannel` on.
  Kernels(LaunchMarks& marks, CUstream stream, std::uint64_t number, const std::vector<unsigned>& channels = {2},
          unsigned firstChannel = 0)
      : channels_(channels), args_(std::make_unique<device::KernelArgs[]>(channels.size())) {
    std::vector<PreparedLaunch> launches(channels.size());
    for (std::size_t i = 0; i < channels.size(); ++i) {
      args_[i].marks = nullptr;
      args_[i].firstChannel = firstChannel;
      launches[i].grid = channels[i];
      launches[i].args = &args_[i];
    }
    marks.add(stream, {number, 3, false}, launches);
  }
  bool marked() const { return args_[0].marks != nullptr; }
  void begin(std::size_t kernel = 0) const { write(args_[kernel].marks->begun, kernel); }
  void endChannel(unsigned channel, std::size_t kernel = 0) const {
    write(args_[kernel].marks->ended[args_[kernel].firstChannel + channel], kernel);
  }
  void end(std::size_t kernel = 0) const {
    for (unsigned channel = 0; channel < channels_[kernel]; ++channel) endChannel(channel, kernel);
  }
  void run() const {
    for (std::size_t kernel = 0; kernel < channels_.size(); ++kernel) begin(kernel), end(kernel);
  }

 private:
  void write(std::uint64_t& word, std::size_t kernel) const {
    std::atomic_ref(word).store(args_[kernel].number, std::memory_order_relaxed);
  }
  std::vector<unsigned> channels_;
  std::unique_ptr<device::KernelArgs[]> args_;
};

class LaunchMarked : public testing::Test {
 protected:
  void SetUp() override {
    const auto loaded = gpu::loadDriver();
    ASSERT_TRUE(loaded.ok());
    device_ = gpu::Device::create(*loaded.value(), 0).value();
    marks_ = LaunchMarks::create(*device_).value();
  }
  void expectFront(State state, std::uint64_t number, LaunchMarks& marks) const {
    const LaunchMarks::Front front = marks.front();
    EXPECT_EQ(front.state, state);
    EXPECT_EQ(front.call.number, number);
  }
  static CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(number); }

  std::unique_ptr<gpu::Device> device_;
  std::unique_ptr<LaunchMarks> marks_;
};

TEST_F(LaunchMarked, TheFirstThatHasNotEndedIsToldAndWhetherItHasBegun) {
  expectFront(State::Ended, 0, *marks_);
  const Kernels one(*marks_, stream(1), 11);
  const Kernels two(*marks_, stream(2), 12);
  expectFront(State::Queued, 11, *marks_);
  one.begin();
  expectFront(State::Begun, 11, *marks_);
  EXPECT_EQ(marks_->front().call.function, 3);
  EXPECT_EQ(marks_->front().stream, stream(1));
  one.end();
  expectFront(State::Queued, 12, *marks_);
  EXPECT_EQ(marks_->front().stream, stream(2));
  two.run();
  expectFront(State::Ended, 0, *marks_);
}

TEST_F(LaunchMarked, AKernelHasEndedOnceAllOfItsChannelsHave) {
  const Kernels one(*marks_, stream(1), 1, {3}, 5);
  one.begin();
  one.endChannel(0);
  one.endChannel(2);
  expectFront(State::Begun, 1, *marks_);
  one.endChannel(1);
  expectFront(State::Ended, 0, *marks_);
}

TEST_F(LaunchMarked, OfSeveralKernelsTheFirstBeginsAndTheLastEnds) {
  const Kernels group(*marks_, stream(1), 1, {4, 1, 2});
  const Kernels next(*marks_, stream(1), 2, {4});
  group.begin(0);
  group.end(0);
  expectFront(State::Begun, 1, *marks_);
  group.begin(1);
  group.end(1);
  group.begin(2);
  expectFront(State::Begun, 1, *marks_);
  group.end(2);
  expectFront(State::Queued, 2, *marks_);
  next.run();
  expectFront(State::Ended, 0, *marks_);
}

TEST_F(LaunchMarked, LaunchesOfAllCommunicatorsHaveOneOrder) {
  EXPECT_FALSE(marks_->severalHere());
  const auto other = LaunchMarks::create(*device_).value();
  EXPECT_TRUE(marks_->severalHere());
  const Kernels ahead(*other, stream(1), 5);
  const Kernels behind(*marks_, stream(1), 1);
  EXPECT_LT(other->front().order, marks_->front().order);
}

TEST_F(LaunchMarked, OfALongQueueTheFirstOnesAreRemembered) {
  std::vector<std::unique_ptr<Kernels>> queue;
  for (std::uint64_t number = 1; number <= 400; ++number) {
    queue.push_back(std::make_unique<Kernels>(*marks_, stream(1), number));
  }
  expectFront(State::Queued, 1, *marks_);
  // What has ended leaves its place.
  for (std::size_t i = 0; i < 300; ++i) queue[i]->run();
  EXPECT_EQ(marks_->front().state, State::Unknown) << "those behind it were not remembered";
  const Kernels last(*marks_, stream(1), 401);
  EXPECT_EQ(marks_->front().state, State::Unknown) << "nor those in front of this one";
  for (std::size_t i = 300; i < 400; ++i) queue[i]->run();
  last.begin();
  expectFront(State::Begun, 401, *marks_);
  last.end();
  expectFront(State::Ended, 0, *marks_);
}

TEST_F(LaunchMarked, WithGraphsNobodyIsTakenForQueued) {
  marks_->captured();
  const Kernels one(*marks_, stream(1), 1);
  EXPECT_EQ(marks_->front().state, State::Unknown);
  one.begin();
  expectFront(State::Begun, 1, *marks_);
}

TEST_F(LaunchMarked, NothingIsKnownOnceALaunchHasFailed) {
  const Kernels one(*marks_, stream(1), 1);
  marks_->giveUp();
  EXPECT_EQ(marks_->front().state, State::Unknown);
  const Kernels two(*marks_, stream(1), 2);
  EXPECT_FALSE(two.marked());
}

}  // namespace
}  // namespace tutti::comm
