// What is told of channels, where the test writes what kernels would.
#include "comm/launch/channel_events.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "comm/launch/stamps.h"
#include "gpu/driver.h"
#include "plugin/profiler.h"
#include "support/log_capture.h"
#include "support/until.h"

namespace tutti::comm {
namespace {

/// Writes down what it hears: "c2 under 7 at 10", "c2 until 20", "c2 ends".
class Heard final : public plugin::EventSink {
 public:
  void* start(plugin::Event& event) override {
    EXPECT_EQ(event.type, static_cast<unsigned>(ncclProfileKernelCh));
    const std::lock_guard lock(mutex_);
    const auto channel = static_cast<std::uintptr_t>(event.kernelCh.channelId);
    said_.push_back("c" + std::to_string(channel) + " under " +
                    std::to_string(reinterpret_cast<std::uintptr_t>(event.parentObj)) + " at " +
                    std::to_string(event.kernelCh.pTimer));
    return reinterpret_cast<void*>(channel + 1);
  }
  void stop(void* handle) override { say(handle, " ends"); }
  void state(void* handle, plugin::EventState state, plugin::EventStateArgs* args) override {
    EXPECT_EQ(state, ncclProfilerKernelChStop);
    say(handle, " until " + std::to_string(args->kernelCh.pTimer));
  }
  std::vector<std::string> said() const {
    const std::lock_guard lock(mutex_);
    return said_;
  }

 private:
  void say(void* handle, const std::string& what) {
    const std::lock_guard lock(mutex_);
    said_.push_back("c" + std::to_string(reinterpret_cast<std::uintptr_t>(handle) - 1) + what);
  }
  mutable std::mutex mutex_;
  std::vector<std::string> said_;
};

using Said = std::vector<std::string>;

class ChannelsTold : public testing::Test {
 protected:
  void SetUp() override {
    const auto loaded = gpu::loadDriver();
    ASSERT_TRUE(loaded.ok());
    device_ = gpu::Device::create(*loaded.value(), 0).value();
  }
  std::shared_ptr<StampedLaunch> take(std::size_t stamps) { return events_.take(*device_, stamps).value(); }
  /// The kernels of `launched` are to run, with a channel for each of the first stamps.
  void expect(const std::shared_ptr<StampedLaunch>& launched, int channels) {
    launched->sink = heard_;
    for (int channel = 0; channel < channels; ++channel) {
      launched->channels.push_back({channel, static_cast<std::size_t>(channel), reinterpret_cast<void*>(7)});
    }
  }
  /// As a kernel writes it.
  static void write(std::uint64_t& word, std::uint64_t when) {
    std::atomic_ref(word).store(when, std::memory_order_relaxed);
  }
  /// On the software GPU host and device address memory alike.
  static device::Stamp* stampsOf(const StampedLaunch& launched) { return launched.stamps->onDevice(); }
  bool awaitSaid(std::size_t count) {
    return test::until([&] { return heard_->said().size() >= count; });
  }

  std::unique_ptr<gpu::Device> device_;
  const std::shared_ptr<Heard> heard_ = std::make_shared<Heard>();
  ChannelEvents events_;
};

TEST_F(ChannelsTold, BeginAndEndWithTheTimesThatKernelsWrite) {
  auto launched = take(2);
  device::Stamp* const stamps = stampsOf(*launched);
  expect(launched, 2);
  events_.expect(std::move(launched));
  write(stamps[1].begin, 10);
  ASSERT_TRUE(awaitSaid(1));
  EXPECT_EQ(heard_->said(), Said{"c1 under 7 at 10"});
  write(stamps[1].end, 20);
  ASSERT_TRUE(awaitSaid(3));
  write(stamps[0].begin, 30);
  write(stamps[0].end, 31);
  ASSERT_TRUE(awaitSaid(6));
  EXPECT_EQ(heard_->said(),
            (Said{"c1 under 7 at 10", "c1 until 20", "c1 ends", "c0 under 7 at 30", "c0 until 31", "c0 ends"}));
}

TEST_F(ChannelsTold, OfWhichTheEndWasSeenFirstBeginOnce) {
  auto launched = take(1);
  device::Stamp* const stamps = stampsOf(*launched);
  expect(launched, 1);
  write(stamps[0].end, 20);
  events_.expect(std::move(launched));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(heard_->said(), Said{}) << "it has not begun as far as anybody can see";
  write(stamps[0].begin, 10);
  ASSERT_TRUE(awaitSaid(3));
  EXPECT_EQ(heard_->said(), (Said{"c0 under 7 at 10", "c0 until 20", "c0 ends"}));
}

TEST_F(ChannelsTold, EndWithTheirCommunicatorWhereTheyHaveBegun) {
  auto launched = take(3);
  device::Stamp* const stamps = stampsOf(*launched);
  expect(launched, 3);
  write(stamps[0].begin, 1);
  write(stamps[0].end, 2);
  write(stamps[1].begin, 3);
  events_.expect(std::move(launched));
  events_.close();
  EXPECT_EQ(heard_->said(), (Said{"c0 under 7 at 1", "c0 until 2", "c0 ends", "c1 under 7 at 3", "c1 ends"}));
  EXPECT_EQ(heard_.use_count(), 1) << "and nobody keeps the listener";
  test::expectLog("asked for by a communicator that has ended");
  EXPECT_EQ(events_.take(*device_, 1).status().code(), ncclInternalError);
}

TEST_F(ChannelsTold, OfAReplayAreToldBeforeTheNextOne) {
  auto launched = take(1);
  device::Stamp* const stamps = stampsOf(*launched);
  for (std::uint64_t replay = 1; replay <= 3; ++replay) {
    if (replay > 1) events_.tellBeforeReplay(*launched);
    EXPECT_EQ(heard_->said().size(), 3 * (replay - 1));
    EXPECT_EQ(launched->stamps->read(0).begin, 0U);
    expect(launched, 1);
    events_.expect(launched);
    write(stamps[0].begin, 10 * replay);
    write(stamps[0].end, 10 * replay + 1);
  }
  events_.close();
  EXPECT_EQ(heard_->said().back(), "c0 ends");
  EXPECT_EQ(heard_->said().size(), 9U);
}

TEST_F(ChannelsTold, UseTheirMemoryAgainWhateverSizesTakeTurns) {
  std::set<const StampedLaunch*> seen;
  for (int i = 0; i < 300; ++i) {
    auto launched = take(i % 2 == 0 ? 3 : 500);
    seen.insert(launched.get());
    device::Stamp* const stamps = stampsOf(*launched);
    EXPECT_EQ(launched->stamps->read(0).end, 0U);
    expect(launched, 1);
    events_.expect(std::move(launched));
    write(stamps[0].begin, 1);
    write(stamps[0].end, 2);
    ASSERT_TRUE(awaitSaid(3 * (static_cast<std::size_t>(i) + 1)));
  }
  EXPECT_LE(seen.size(), 8U) << "one of each size, and those that the thread has not put away yet";
}

TEST_F(ChannelsTold, MayOutliveTheirCommunicatorInAGraph) {
  auto launched = take(4);
  events_.close();
  launched.reset();  // gives its memory back to nobody
}

}  // namespace
}  // namespace tutti::comm
