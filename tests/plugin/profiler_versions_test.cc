// Profilers of every version: what each is told of the newest one's events.
#include "plugin/profiler_versions.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "plugin/profiler.h"
#include "plugin/recorded_profiler.h"

namespace tutti::test {
namespace {

constexpr int kAll = (1 << 15) - 1;

/// A plugin of the version under test that has been told of a communicator.
class ProfilerVersions : public testing::TestWithParam<int> {
 protected:
  ProfilerVersions() {
    recorded_.reset(kAll);
    recorded_.fail(0, false, false);
    plugin_ = plugin::findProfiler(library_, file_);
  }
  ~ProfilerVersions() override { recorded_.fail(0, false, false); }
  void begin() { ASSERT_EQ(plugin_->init(&context_, &mask_, {0x77, "mine", 2, 4, 3}), ncclSuccess); }
  void* start(plugin::Event event) { return plugin_->start(context_, event); }
  std::string textOf(plugin::Event event) {
    recorded_.reset(kAll);
    start(event);
    const auto starts = recorded_.records("start");
    return starts.empty() ? "" : starts.back().text;
  }
  static plugin::Event eventOf(int type) {
    plugin::Event event{};
    event.type = static_cast<std::uint64_t>(type);
    return event;
  }

  const std::string file_ =
      std::string(std::getenv("TUTTI_TEST_PLUGINS")) + "/libnccl-profiler-testv" + std::to_string(GetParam()) + ".so";
  const RecordedProfiler recorded_{file_};
  DlLibrary library_ = DlLibrary::open(file_);
  std::unique_ptr<plugin::ProfilerPlugin> plugin_;
  void* context_ = nullptr;
  int mask_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Versions, ProfilerVersions, testing::Range(1, 7),
                         [](const auto& test) { return "V" + std::to_string(test.param); });

TEST_P(ProfilerVersions, AreToldOfTheCommunicatorAsFarAsTheyCanBe) {
  ASSERT_NE(plugin_, nullptr);
  EXPECT_STREQ(plugin_->name(), "TestProfiler");
  begin();
  const auto inits = recorded_.records("init");
  ASSERT_EQ(inits.size(), 1U);
  EXPECT_EQ(inits[0].version, GetParam());
  EXPECT_STREQ(inits[0].text,
               GetParam() >= 4 ? "name=mine hasId=1 nodes=2 ranks=4" : "name=NULL hasId=0 nodes=0 ranks=0");
  EXPECT_EQ(mask_, GetParam() >= 6 ? kAll : kAll & ~(7 << 12)) << "copy engines are the newest version's alone";
  plugin_->finalize(context_);
  EXPECT_EQ(recorded_.records("finalize").size(), 1U);
}

TEST_P(ProfilerVersions, HearOfTheKindsThatTheyHaveDescriptorsFor) {
  begin();
  const int kinds = GetParam() <= 2 ? 6 : GetParam() <= 4 ? 8 : GetParam() == 5 ? 12 : 15;
  for (int bit = 0; bit < 15; ++bit) {
    recorded_.reset(kAll);
    void* const handle = start(eventOf(1 << bit));
    EXPECT_EQ(handle != nullptr, bit < kinds) << "bit " << bit;
    EXPECT_EQ(recorded_.records("start").size(), bit < kinds ? 1U : 0U) << "bit " << bit;
  }
}

TEST_P(ProfilerVersions, HearOfTheStatesThatTheyKnow) {
  begin();
  for (int state = 0; state <= 30; ++state) {
    recorded_.reset(kAll);
    plugin::EventStateArgs args{};
    args.proxyCtrl.appendedProxyOps = 5;
    plugin_->state(reinterpret_cast<void*>(9), static_cast<plugin::EventState>(state), &args);
    const int last = GetParam() <= 3 ? 18 : GetParam() == 4 ? 22 : GetParam() == 5 ? 24 : 30;
    const int first = GetParam() <= 4 ? 8 : 0;
    const auto states = recorded_.records("state");
    ASSERT_EQ(states.size(), state >= first && state <= last ? 1U : 0U) << state;
    if (state != ncclProfilerProxyCtrlAppendEnd) continue;
    EXPECT_EQ(states[0].type, state);
    EXPECT_EQ(states[0].handle, 9);
    EXPECT_STREQ(states[0].text, "appended=5");
  }
}

TEST_P(ProfilerVersions, HearOfACollectiveInTheirWords) {
  begin();
  plugin::Event event = eventOf(ncclProfileColl);
  event.parentObj = reinterpret_cast<void*>(70);
  event.rank = 3;
  event.coll = {41,
                "ReduceScatter",
                reinterpret_cast<void*>(0x10),
                reinterpret_cast<void*>(0x20),
                1000,
                2,
                "ncclFloat16",
                6,
                7,
                "RING",
                "LL",
                reinterpret_cast<void*>(71)};
  const std::string text = textOf(event);
  const std::string words = GetParam() == 1
                                ? "seq=41 func=3 count=1000 root=2 type=6 channels=6 warps=7 algo=1 proto=0"
                                : "seq=41 func=ReduceScatter count=1000 root=2 type=ncclFloat16 channels=6 warps=7 "
                                  "algo=RING proto=LL";
  EXPECT_EQ(text, words + " send=0x10 recv=0x20" + leftOut(GetParam(), true) + (GetParam() >= 5 ? " group=71" : ""));
  const auto start = recorded_.records("start").at(0);
  EXPECT_EQ(start.parent, GetParam() >= 5 ? 70 : 71) << "the group is what old versions have above it";
  EXPECT_EQ(start.rank, 3);
}

TEST_P(ProfilerVersions, HearOfAMessageInTheirWords) {
  begin();
  plugin::Event event = eventOf(ncclProfileP2p);
  event.parentObj = reinterpret_cast<void*>(70);
  event.p2p = {"Recv", reinterpret_cast<void*>(0x30), "ncclBfloat16", 9, 2, 4, reinterpret_cast<void*>(71)};
  std::string text = GetParam() == 1 ? "func=7 count=9 peer=2 type=9 buff=0x30"
                                     : "func=Recv count=9 peer=2 type=ncclBfloat16 buff=0x30";
  text += leftOut(GetParam(), false);
  if (GetParam() >= 4) text += " channels=4";
  if (GetParam() >= 5) text += " group=71";
  EXPECT_EQ(textOf(event), text);
  EXPECT_EQ(recorded_.records("start").at(0).parent, GetParam() >= 5 ? 70 : 71);
}

TEST_P(ProfilerVersions, HearOfTheNetworksStepsAndOfKernels) {
  begin();
  plugin::Event op = eventOf(ncclProfileProxyOp);
  op.proxyOp = {123, 4, 5, 6, 7, 1};
  EXPECT_EQ(textOf(op), "pid=123 channel=4 peer=5 steps=6 chunk=7 send=1");
  plugin::Event step = eventOf(ncclProfileProxyStep);
  step.proxyStep = {12};
  EXPECT_EQ(textOf(step), "step=12");
  plugin::Event net = eventOf(ncclProfileNetPlugin);
  net.netPlugin = {55, reinterpret_cast<void*>(0x50)};
  EXPECT_EQ(textOf(net), GetParam() >= 3 ? "id=55 data=0x50" : "");
  plugin::Event kernel = eventOf(ncclProfileKernelCh);
  kernel.kernelCh = {3, 99};
  EXPECT_EQ(textOf(kernel), GetParam() >= 4 ? "channel=3 timer=99" : GetParam() == 3 ? "channel=3" : "");
}

TEST_P(ProfilerVersions, ThatFailAndGiveNoHandlesAreNoTrouble) {
  begin();
  recorded_.fail(0, true, true);
  EXPECT_EQ(start(eventOf(ncclProfileColl)), nullptr);
  plugin_->stop(reinterpret_cast<void*>(1));
  plugin_->finalize(context_);
  EXPECT_EQ(recorded_.records().size(), 4U);
}

TEST(ProfilerMask, TellsOfEveryParentOfWhatIsWanted) {
  using plugin::withParents;
  EXPECT_EQ(withParents(0), 0);
  EXPECT_EQ(withParents(ncclProfileProxyCtrl), ncclProfileProxyCtrl);
  EXPECT_EQ(withParents(ncclProfileGroup), ncclProfileGroup | ncclProfileGroupApi);
  EXPECT_EQ(withParents(ncclProfileKernelLaunch), ncclProfileKernelLaunch | ncclProfileGroupApi);
  EXPECT_EQ(withParents(ncclProfileColl),
            ncclProfileColl | ncclProfileCollApi | ncclProfileGroupApi | ncclProfileGroup);
  EXPECT_EQ(withParents(ncclProfileP2p), ncclProfileP2p | ncclProfileP2pApi | ncclProfileGroupApi | ncclProfileGroup);
  const int both = ncclProfileGroup | ncclProfileColl | ncclProfileP2p | ncclProfileGroupApi | ncclProfileCollApi |
                   ncclProfileP2pApi;
  EXPECT_EQ(withParents(ncclProfileKernelCh), both | ncclProfileKernelCh);
  EXPECT_EQ(withParents(ncclProfileProxyOp), both | ncclProfileProxyOp);
  EXPECT_EQ(withParents(ncclProfileProxyStep), both | ncclProfileProxyOp | ncclProfileProxyStep);
  EXPECT_EQ(withParents(ncclProfileNetPlugin), both | ncclProfileProxyOp | ncclProfileProxyStep | ncclProfileNetPlugin);
  EXPECT_EQ(withParents(ncclProfileCeSync),
            ncclProfileCeSync | ncclProfileCeColl | ncclProfileCollApi | ncclProfileGroupApi);
}

}  // namespace
}  // namespace tutti::test
