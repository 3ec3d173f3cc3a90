// When the channels of kernels worked, as a trace has it. What is timed in a running communicator tests/e2e/traces.py
// reads back.
#include "comm/launch/kernel_times.h"

#include <gtest/gtest.h>

#include <vector>

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

}  // namespace
}  // namespace tutti::comm
