// Which operation a step belongs to, by its number alone, and what is told of it.
#include "proxy/step_events.h"
#include "plugin/event_mask.h"
#include "plugin/profiler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tutti::proxy {
namespace {

constexpr std::uint64_t kAtOnce = StepEvents::kAtOnce;

/// Writes down what it hears: "op3 under 7", "op3 in state 19", "op3 ends".
class Listener final : public plugin::EventSink {
 public:
  void* start(plugin::Event& event) override {
    const std::string name = nameOf(event);
    heard.push_back(name + " under " + std::to_string(reinterpret_cast<std::uintptr_t>(event.parentObj)));
    const std::uintptr_t handle = names_.size() + 100;
    names_[handle] = name;
    return reinterpret_cast<void*>(handle);
  }
  void stop(void* handle) override {
    if (handle != nullptr) heard.push_back(of(handle) + " ends");
  }
  void state(void* handle, plugin::EventState state, plugin::EventStateArgs* args) override {
    if (handle == nullptr) return;
    std::string text = of(handle) + " in state " + std::to_string(state);
    if (state == ncclProfilerProxyCtrlAppendEnd) text += " " + std::to_string(args->proxyCtrl.appendedProxyOps);
    if (state < ncclProfilerProxyCtrlIdle || state == ncclProfilerProxyStepSendPeerWait_v4) {
      text += " " + std::to_string(args->proxyStep.transSize);
    }
    heard.push_back(text);
  }
  std::vector<std::string> take() { return std::exchange(heard, {}); }

  std::vector<std::string> heard;

 private:
  static std::string nameOf(const plugin::Event& event) {
    if (event.type == ncclProfileProxyStep) return "step" + std::to_string(event.proxyStep.step);
    if (event.type == ncclProfileNetPlugin) return "net" + std::to_string(event.netPlugin.id);
    if (event.type != ncclProfileProxyOp) return "thread";
    EXPECT_EQ(event.proxyOp.pid, ::getpid());
    return "op" + std::to_string(event.proxyOp.nSteps);
  }
  std::string of(void* handle) { return names_.at(reinterpret_cast<std::uintptr_t>(handle)); }
  std::map<std::uintptr_t, std::string> names_;
};

class ProxyStepEvents : public testing::Test {
 protected:
  ProxyStepEvents() : listener_(std::make_shared<Listener>()) {}
  ~ProxyStepEvents() override { plugin::eventMaskOfProcess = 0; }
  ExpectedSteps operation(std::uint64_t steps, int mask = ncclProfileProxyOp | ncclProfileProxyStep) const {
    return {.sink = listener_,
            .mask = mask,
            .parent = reinterpret_cast<void*>(std::uintptr_t{7}),
            .sends = true,
            .steps = steps,
            .chunkBytes = 64};
  }
  using Heard = std::vector<std::string>;
  const std::shared_ptr<Listener> listener_;
};

TEST_F(ProxyStepEvents, TellOfEachStateOnceAndOfTheSizeWhenItIsKnown) {
  StepEvents events(40, 2);
  EXPECT_FALSE(events.look());
  events.expect(operation(3));
  ASSERT_TRUE(events.look());
  events.follow({kAtOnce, 40, 40, 40});
  EXPECT_EQ(listener_->take(), (Heard{"op3 under 7", "op3 in state 19", "step0 under 100", "step1 under 100",
                                      "step0 in state 8 0", "step1 in state 8 0"}));
  events.setBytes(40, 512);
  events.follow({kAtOnce, 41, 40, 40});
  EXPECT_EQ(listener_->take(), (Heard{"step0 in state 20 512"}));
  events.follow({kAtOnce, 41, 40, 40});
  EXPECT_EQ(listener_->take(), Heard{});
  events.follow({kAtOnce, 41, 41, 41});
  EXPECT_EQ(listener_->take(), (Heard{"step0 in state 9 512", "step0 ends", "step2 under 100", "step2 in state 8 0"}));
  events.follow({kAtOnce, 43, 43, 43});
  const Heard rest = listener_->take();
  EXPECT_EQ(rest.back(), "op3 ends");
  EXPECT_EQ(rest.size(), 2U * 2 + 2 + 1);
}

TEST_F(ProxyStepEvents, TellWhoseAStepIs) {
  StepEvents events(0, 8);
  events.expect(operation(1));
  events.expect(operation(2, 0));  // of no interest, but counted
  events.expect(operation(4, ncclProfileProxyOp));
  ASSERT_TRUE(events.look());
  EXPECT_EQ(listener_->take(), (Heard{"op1 under 7", "op4 under 7"}));
  events.follow({kAtOnce, 1, 1, 1});
  EXPECT_EQ(listener_->take().back(), "op1 ends");
  events.follow({kAtOnce, 6, 6, 6});
  EXPECT_EQ(listener_->take(), Heard{});
  events.follow({kAtOnce, 7, 7, 7});
  EXPECT_EQ(listener_->take(), (Heard{"op4 ends"}));
}

TEST_F(ProxyStepEvents, OnlyCountStepsOfWhichNobodyHears) {
  StepEvents events(3, 8);
  for (int i = 0; i < 5; ++i) events.expect(operation(2, 0));
  EXPECT_FALSE(events.look()) << "there is nothing to follow";
  events.expect(operation(2));
  ASSERT_TRUE(events.look());
  listener_->take();
  events.follow({kAtOnce, 4, 4, 4});  // the first of the unheard ones are still under way
  EXPECT_EQ(listener_->take(), Heard{});
  events.follow({kAtOnce, 13, 13, 13});
  EXPECT_EQ(listener_->take(), (Heard{"op2 in state 19", "step0 under 100", "step1 under 100", "step0 in state 8 0",
                                      "step1 in state 8 0"}));
  events.follow({kAtOnce, 15, 15, 15});
  EXPECT_EQ(listener_->take().back(), "op2 ends");
  EXPECT_FALSE(events.look()) << "and again there is nothing to follow";
  events.expect(operation(7, 0));
  EXPECT_FALSE(events.look());
  events.expect(operation(1));
  ASSERT_TRUE(events.look());
  events.follow({kAtOnce, 23, 23, 23});
  EXPECT_EQ(listener_->take().back(), "op1 ends");
}

TEST_F(ProxyStepEvents, PassOverAnyNumberOfStepsOfWhichNobodyHears) {
  constexpr std::uint64_t kUnheard = std::uint64_t{1} << 50;
  StepEvents events(0, 8);
  events.expect(operation(kUnheard, 0));
  events.expect(operation(2));
  events.expect(operation(kUnheard, 0));
  events.expect(operation(3));
  ASSERT_TRUE(events.look());
  const std::uint64_t all = 2 * kUnheard + 5;
  events.follow({kAtOnce, all, all, all});
  const Heard heard = listener_->take();
  EXPECT_EQ(std::count(heard.begin(), heard.end(), "op2 ends"), 1);
  EXPECT_EQ(heard.back(), "op3 ends");
  EXPECT_EQ(heard.size(), 2U * 2 + 5 * 5 + 2);
}

TEST_F(ProxyStepEvents, HearOfWhatWasExpectedAfterTheLastLook) {
  StepEvents events(0, 8);
  events.expect(operation(1));
  ASSERT_TRUE(events.look());
  events.expect(operation(1));
  events.follow({kAtOnce, 2, 2, 2});
  const Heard heard = listener_->take();
  EXPECT_EQ(std::count(heard.begin(), heard.end(), "op1 ends"), 2);
}

TEST_F(ProxyStepEvents, TellOfMoreStepsThanMayBeUnderWay) {
  StepEvents events(5, 8);
  constexpr std::uint64_t kSteps = 1000;
  events.expect(operation(kSteps));
  ASSERT_TRUE(events.look());
  events.follow({kAtOnce, 5 + kSteps, 5 + kSteps, 5 + kSteps});
  const Heard heard = listener_->take();
  EXPECT_EQ(heard.size(), 3 + kSteps * 5);
  EXPECT_EQ(heard.back(), "op1000 ends");
}

TEST_F(ProxyStepEvents, EndWithTheirConnection) {
  {
    StepEvents events(0, 8);
    events.expect(operation(3));
    events.expect(operation(2));
    ASSERT_TRUE(events.look());
    events.follow({kAtOnce, 1, 1, 0});
    listener_->take();
    events.close();
    EXPECT_EQ(listener_->take(),
              (Heard{"step0 ends", "step1 ends", "step2 ends", "op3 ends", "step0 ends", "step1 ends", "op2 ends"}));
    events.expect(operation(1));
  }
  EXPECT_EQ(listener_->take(), Heard{}) << "nothing is expected after it";
  EXPECT_EQ(listener_.use_count(), 1) << "and nobody is kept";
}

TEST_F(ProxyStepEvents, EndWhereStepsComeThatNobodyCounted) {
  StepEvents uncounted(0, 8);
  uncounted.expect(operation(1));
  ASSERT_TRUE(uncounted.look());
  uncounted.follow({kAtOnce, 3, 3, 3});
  EXPECT_EQ(listener_->take(), (Heard{"op1 under 7", "op1 ends"}));
  uncounted.expect(operation(1));
  uncounted.look();
  uncounted.follow({kAtOnce, 4, 4, 4});
  EXPECT_EQ(listener_->take(), Heard{});
  EXPECT_EQ(uncounted.requestOf(4), nullptr);

  StepEvents forgotten(0, 8);
  forgotten.expect(operation(2));
  ASSERT_TRUE(forgotten.look());
  forgotten.forget();
  forgotten.look();
  EXPECT_EQ(listener_->take(), (Heard{"op2 under 7", "op2 ends"}));
}

TEST_F(ProxyStepEvents, GiveNetworksWhatTheirRequestIsFor) {
  StepEvents events(0, 8);
  events.expect(operation(1, ncclProfileProxyOp | ncclProfileProxyStep | ncclProfileNetPlugin));
  ASSERT_TRUE(events.look());
  void* const request = events.requestOf(0);
  void* handle = this;
  EXPECT_EQ(plugin::netEvent(&handle, ncclProfilerNetEventStart, request, 5, nullptr), ncclSuccess);
  EXPECT_EQ(handle, nullptr) << "the step has not begun";
  events.follow({kAtOnce, 0, 0, 0});
  listener_->take();
  EXPECT_EQ(plugin::netEvent(&handle, ncclProfilerNetEventStart, request, 5, nullptr), ncclSuccess);
  EXPECT_NE(handle, nullptr);
  EXPECT_EQ(listener_->take(), (Heard{"net5 under 101"}));
  events.follow({kAtOnce, 1, 1, 1});
  listener_->take();
  EXPECT_EQ(plugin::netEvent(&handle, ncclProfilerNetEventStart, request, 5, nullptr), ncclSuccess);
  EXPECT_EQ(handle, nullptr) << "it is over";
  EXPECT_EQ(plugin::netEvent(&handle, ncclProfilerNetEventStart, nullptr, 5, nullptr), ncclSuccess);
  EXPECT_EQ(handle, nullptr);
}

TEST_F(ProxyStepEvents, FollowAKernelWhileOperationsAreLaunched) {
  constexpr std::uint64_t kOperations = 2000;
  StepEvents events(0, 8);
  std::atomic<std::uint64_t> moved{0};
  std::jthread launches([&] {
    for (std::uint64_t i = 0; i < kOperations; ++i) {
      events.expect(operation(1 + i % 3, ncclProfileProxyOp));
      moved.fetch_add(1 + i % 3, std::memory_order_release);  // its kernel
    }
  });
  std::uint64_t ended = 0;
  while (ended < kOperations) {
    const std::uint64_t over = moved.load(std::memory_order_acquire);
    if (!events.look()) continue;
    events.follow({kAtOnce, over, over, over});
    const Heard heard = listener_->take();
    ended += static_cast<std::uint64_t>(
        std::count_if(heard.begin(), heard.end(), [](const std::string& one) { return one.ends_with("ends"); }));
  }
  EXPECT_EQ(ended, kOperations);
}

TEST_F(ProxyStepEvents, SayHowManyOperationsWereTakenUp) {
  plugin::eventMaskOfProcess = ncclProfileProxyCtrl;
  StepEvents events(0, 8);
  for (int i = 0; i < 3; ++i) events.expect(operation(1, 0));
  ASSERT_TRUE(events.look());
  EXPECT_EQ(listener_->take(), (Heard{"thread under 0", "thread in state 17", "thread in state 18 3", "thread ends"}));
}

}  // namespace
}  // namespace tutti::proxy
