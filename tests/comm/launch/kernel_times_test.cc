// When the channels of kernels worked, as a trace has it. What is timed in a running communicator tests/e2e/traces.py
// reads back.
#include "comm/launch/kernel_times.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "gpu/fake_driver.h"

namespace tutti::comm {
namespace {

trace::Record from(std::uint64_t begin, std::uint64_t end) {
  trace::Record record{};
  record.begin = begin;
  record.end = end;
  return record;
}

using Times = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
Times timesOf(const std::vector<trace::Record>& records) {
  Times times;
  for (const trace::Record& record : records) times.emplace_back(record.begin, record.end);
  return times;
}

TEST(KernelTimes, ChannelsByTheHostsClockKnowBetterThanEvents) {
  std::vector<trace::Record> channels{from(1020, 1900), from(1010, 2050)};
  trace::Record whole = from(1040, 2000);
  placeChannels(channels, whole, 1000, 3000);
  EXPECT_EQ(timesOf(channels), (Times{{1020, 1900}, {1010, 2050}}));
  EXPECT_EQ(timesOf({whole}), (Times{{1010, 2050}}));
}

TEST(KernelTimes, ChannelsByAnotherClockBeginWithTheirKernel) {
  constexpr std::uint64_t kEpoch = 1'790'000'000'000'000'000;
  std::vector<trace::Record> channels{from(kEpoch + 50, kEpoch + 700), from(kEpoch, kEpoch + 900)};
  trace::Record whole = from(1040, 2000);
  placeChannels(channels, whole, 1000, 3000);
  EXPECT_EQ(timesOf(channels), (Times{{1090, 1740}, {1040, 1940}}));
  EXPECT_EQ(timesOf({whole}), (Times{{1040, 2000}}));
}

TEST(KernelTimes, ChannelsByAnotherClockEndWithTheirKernelAtTheLatest) {
  std::vector<trace::Record> channels{from(10, 5000), from(4000, 6000)};
  trace::Record whole = from(1040, 2000);
  placeChannels(channels, whole, 1000, 3000);
  EXPECT_EQ(timesOf(channels), (Times{{1040, 2000}, {2000, 2000}}));
}

TEST(KernelTimes, AreThoseOfTheKernelAloneWithoutChannels) {
  std::vector<trace::Record> channels;
  trace::Record whole = from(1040, 2000);
  placeChannels(channels, whole, 1000, 3000);
  EXPECT_EQ(timesOf({whole}), (Times{{1040, 2000}}));
}

TEST(KernelTimes, AskABusyDeviceAgainAfterLongerAndLongerPauses) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  AnchorRetries retries;
  std::uint64_t now = 5 * kSecond;
  EXPECT_TRUE(retries.due(now));
  for (const std::uint64_t seconds : {1, 2, 4, 8, 16, 32, 60, 60}) {
    retries.missed(now);
    EXPECT_FALSE(retries.due(now + seconds * kSecond - 1)) << seconds;
    now += seconds * kSecond;
    EXPECT_TRUE(retries.due(now)) << seconds;
  }
}

/// A device that may be too busy to come to any event. The launches of one communicator, which are looked at by what is
/// recorded for them.
class TimesOfABusyDevice : public testing::Test {
 protected:
  TimesOfABusyDevice() {
    fake.driver().cuEventElapsedTime = [](float*, CUevent, CUevent) { return CUDA_SUCCESS; };
    device = gpu::Device::create(fake.driver(), 0).value();
    times = std::make_unique<KernelTimes>(*device);
  }
  /// Whether it is timed.
  bool launch() {
    times->begin(CUstream{}, {});
    const int before = recorded();
    times->end(CUstream{}, 1, 1, 1);
    return recorded() > before;
  }
  int recorded() { return fake.calls("cuEventRecord"); }

  test::FakeDriver fake;
  std::unique_ptr<gpu::Device> device;
  std::unique_ptr<KernelTimes> times;
};

TEST_F(TimesOfABusyDevice, AreThoseOfLaunchesAfterItHasSaidItsTime) {
  fake.streamState = CUDA_ERROR_NOT_READY;
  EXPECT_FALSE(launch());
  EXPECT_EQ(recorded(), 1) << "one try";
  fake.streamState = CUDA_SUCCESS;
  const Deadline deadline = Deadline::in(std::chrono::minutes(1));
  bool timed = false;
  while (!timed && !deadline.expired()) {
    std::this_thread::sleep_for(milliseconds(5));
    timed = launch();
  }
  EXPECT_TRUE(timed);
}

TEST_F(TimesOfABusyDevice, CostFewTries) {
  fake.streamState = CUDA_ERROR_NOT_READY;
  const auto start = SteadyClock::now();
  for (int i = 0; i < 60; ++i) {
    EXPECT_FALSE(launch());
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_LE(recorded(), 1 + secondsSince(start));
}

}  // namespace
}  // namespace tutti::comm
