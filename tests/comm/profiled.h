// Communicators of a process with a profiler plugin that remembers what it is told, which NCCL_PROFILER_PLUGIN names.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "comm/graph.h"
#include "comm/world.h"
#include "nccl_profiler.h"
#include "plugin/recorded_profiler.h"

namespace tutti::test {

/// What a plugin was told, one call after the other, against what holds whatever is called.
class HeardInOrder {
 public:
  using Record = RecordedProfiler::Record;
  explicit HeardInOrder(const std::vector<Record>& records) : records_(records) {}

  /// Every context is told of between its init and its finalize, which come once each. Every event begins once, has the
  /// parent that its kind has, which began before, and ends once, after its states.
  void expectWhole() {
    EXPECT_LT(records_.size(), TEST_PROFILER_MOST) << "some have been forgotten";
    for (const Record& one : records_) {
      const std::string call = one.call;
      if (call == "init") begin(one);
      if (call == "finalize") finish(one);
      if (call == "start") start(one);
      if (call == "state") state(one);
      if (call == "stop") stop(one);
    }
    for (const auto& [handle, event] : open_) ADD_FAILURE() << event->type << " has no end: " << event->text;
    for (const auto& [context, init] : living_) {
      if (context != 0) ADD_FAILURE() << "context " << context << " has no end: " << init->text;
    }
  }

 private:
  void begin(const Record& one) {
    if (one.type != ncclSuccess) return;
    EXPECT_TRUE(living_.emplace(one.context, &one).second || one.context == 0) << "init again: " << one.context;
  }
  void finish(const Record& one) {
    EXPECT_NE(one.context, 0);
    EXPECT_EQ(living_.erase(one.context), 1U) << "finalize without init: " << one.context;
  }
  void start(const Record& one) {
    EXPECT_TRUE(living_.contains(one.context)) << one.type << " outside of context " << one.context;
    EXPECT_TRUE(begun_.emplace(one.handle, &one).second) << "handle " << one.handle << " again";
    open_.emplace(one.handle, &one);
    expectParent(one);
    expectRank(one);
  }
  void state(const Record& one) const {
    const auto event = open_.find(one.handle);
    ASSERT_NE(event, open_.end()) << "state " << one.type << " of what is not open";
    EXPECT_TRUE(living_.contains(event->second->context)) << "state " << one.type << " outside of its context";
    EXPECT_EQ(event->second->type, typeWith(one.type)) << "state " << one.type;
  }
  void stop(const Record& one) {
    const auto event = open_.find(one.handle);
    ASSERT_NE(event, open_.end()) << "the end of what is not open, " << one.handle;
    EXPECT_TRUE(living_.contains(event->second->context)) << event->second->type << " ends outside of its context";
    open_.erase(event);
  }
  void expectParent(const Record& one) const {
    const auto parent = begun_.find(one.parent);
    const long type = parent == begun_.end() ? 0 : parent->second->type;
    EXPECT_EQ(parent != begun_.end(), one.parent != 0) << one.type << " below what has not begun: " << one.text;
    EXPECT_TRUE(parentsOf(one).contains(type)) << one.type << " below " << type << ": " << one.text;
    if (type == 0) return;
    // Communicators share the group that is open.
    if (type != ncclProfileGroupApi) {
      EXPECT_EQ(parent->second->context, one.context) << one.type;
    }
    if (staysOpen(one)) {
      EXPECT_TRUE(open_.contains(one.parent)) << one.type << " below a " << type << " that is over: " << one.text;
    }
  }
  /// Those that the descriptor names it in have the communicator's, as far as init tells it.
  void expectRank(const Record& one) const {
    constexpr long kNamed =
        ncclProfileColl | ncclProfileP2p | ncclProfileProxyOp | ncclProfileProxyStep | ncclProfileNetPlugin;
    if ((one.type & kNamed) == 0) {
      EXPECT_EQ(one.rank, 0) << "of a " << one.type;
      return;
    }
    const auto its = living_.find(one.context);
    if (one.context == 0 || its == living_.end() || its->second->rank < 0) return;
    EXPECT_EQ(one.rank, its->second->rank) << "of a " << one.type << ": " << one.text;
  }
  /// 0: it has none.
  static std::set<long> parentsOf(const Record& one) {
    const bool calls = one.version >= 5;
    switch (one.type) {
      case ncclProfileCollApi:
      case ncclProfileP2pApi:
      case ncclProfileKernelLaunch:
        return {ncclProfileGroupApi};
      case ncclProfileColl:
        return {calls ? ncclProfileCollApi : ncclProfileGroup};
      case ncclProfileP2p:
        return calls ? std::set<long>{ncclProfileP2pApi, ncclProfileCollApi} : std::set<long>{ncclProfileGroup};
      case ncclProfileProxyOp:
      case ncclProfileKernelCh:
        return {ncclProfileColl, ncclProfileP2p};
      case ncclProfileProxyStep:
        return {ncclProfileProxyOp};
      case ncclProfileNetPlugin:
        return {ncclProfileProxyStep};
      default:
        return {0};
    }
  }
  /// Whether its parent does, at least until it begins.
  static bool staysOpen(const Record& one) {
    if (one.type == ncclProfileColl || one.type == ncclProfileP2p) return one.version <= 4;
    return one.type != ncclProfileProxyOp && one.type != ncclProfileKernelCh;
  }
  /// Of the events that have this state.
  static long typeWith(long state) {
    if (state == ncclProfilerProxyOpInProgress_v4) return ncclProfileProxyOp;
    if (state == ncclProfilerNetPluginUpdate) return ncclProfileNetPlugin;
    if (state == ncclProfilerKernelChStop) return ncclProfileKernelCh;
    if (state == ncclProfilerGroupStartApiStop || state == ncclProfilerGroupEndApiStart) return ncclProfileGroupApi;
    const bool ofThread = state >= ncclProfilerProxyCtrlIdle && state <= ncclProfilerProxyCtrlAppendEnd;
    return ofThread ? ncclProfileProxyCtrl : ncclProfileProxyStep;
  }

  const std::vector<Record>& records_;
  std::map<int, const Record*> living_;  ///< by context, with its init; 0: of those that have none
  std::map<long, const Record*> begun_;  ///< by handle
  std::map<long, const Record*> open_;
};

class Profiled : public testing::Test {
 protected:
  using Record = RecordedProfiler::Record;
  static constexpr int kAllKinds = (1 << 15) - 1;

  Profiled() { hear(kAllKinds); }
  ~Profiled() override {
    profiler_.fail(0, false, false);
    hear(0);
  }
  void hear(int mask) const { profiler_.reset(mask); }

  void expectWhole() const {
    const std::vector<Record> records = profiler_.records();
    HeardInOrder(records).expectWhole();
  }
  /// A communicator whose operations a graph has held is freed by the next one that begins or ends after the driver has
  /// told of the graph's end.
  void awaitFreed() const {
    const Deadline deadline = Deadline::in(std::chrono::seconds(20));
    while (!living().empty() && !deadline.expired()) withComm(1, [](Member&) {});
    EXPECT_TRUE(living().empty());
  }
  /// Two ranks, of which the first calls what the other never comes to, until that one aborts. `meanwhile`: on the
  /// first rank, once it has called.
  static void abortWhileOneWaits(const std::function<void()>& meanwhile) {
    expectLog("aborted its communicator");
    std::barrier together(2);
    withComm(2, [&](Member& m) {
      const Ints in(m.gpu, 300, 1);
      const auto call = [&] {
        EXPECT_EQ(ncclAllReduce(in.at(), in.at(), 300, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
      };
      call();
      m.sync();
      together.arrive_and_wait();
      if (m.rank == 0) {
        call();
        meanwhile();
      }
      together.arrive_and_wait();
      if (m.rank == 0) {
        EXPECT_EQ(awaitError(m.comm), ncclRemoteError);
      }
      EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
      m.comm = nullptr;
    });
  }
  /// Four ranks call, while another thread changes at random what is wanted.
  void callWhileMasksChange(int rounds) const {
    const std::jthread changes([want = wantOfPlugin()](const std::stop_token& over) {
      std::mt19937 random(7);
      while (!over.stop_requested()) {
        const unsigned long some = random() & random() & kAllKinds;
        want(random() % 4 == 0 ? 0 : static_cast<int>(some));
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    });
    withComm(4, [rounds](Member& m) { callAll(m, rounds); });
  }
  /// Contexts that were heard of and have not ended.
  std::set<int> living() const {
    std::set<int> contexts;
    for (const Record& one : profiler_.records()) {
      const std::string call = one.call;
      if (call == "init" || call == "start") contexts.insert(one.context);
      if (call == "finalize") contexts.erase(one.context);
    }
    return contexts;
  }
  std::vector<std::string> texts(long type) const {
    std::vector<std::string> all;
    for (const Record& one : profiler_.records("start", type)) all.emplace_back(one.text);
    return all;
  }
  std::size_t count(long type) const { return profiler_.records("start", type).size(); }
  /// Of what an event is part of.
  long typeOfParent(const Record& child) const {
    for (const Record& one : profiler_.records("start")) {
      if (one.handle == child.parent) return one.type;
    }
    return 0;
  }

  const RecordedProfiler profiler_{std::getenv("NCCL_PROFILER_PLUGIN")};

 private:
  /// Each rank's calls: collectives and messages, alone, in groups and in a graph.
  static void callAll(const Member& m, int rounds) {
    constexpr std::size_t kCount = 3000;
    const Ints in(m.gpu, kCount, 1);
    const Ints out(m.gpu, 3 * kCount, 0);
    const auto sum = [&](std::size_t at) {
      EXPECT_EQ(ncclAllReduce(in.at(), out.at(at), kCount, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    };
    const auto recording = Recording::of(m.stream(), [&] { sum(0); });
    for (int i = 0; i < rounds; ++i) {
      sum(kCount);
      ncclGroupStart();
      EXPECT_EQ(ncclSend(in.at(), kCount, ncclInt32, (m.rank + 1) % m.size, m.comm, m.stream()), ncclSuccess);
      EXPECT_EQ(ncclRecv(out.at(2 * kCount), kCount, ncclInt32, (m.rank + m.size - 1) % m.size, m.comm, m.stream()),
                ncclSuccess);
      sum(kCount);
      EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
      recording->launch(m.stream());
      if (i % 4 == 3) m.sync();
    }
    m.sync();
    std::vector<int> expected(3 * kCount, m.size);
    std::fill(expected.begin() + 2 * kCount, expected.end(), 1);
    EXPECT_EQ(out.read(), expected);
  }

  /// The plugin's own: from now on it wants those kinds; what was heard stays.
  static TestProfilerReset_fn* wantOfPlugin() {
    void* const library = ::dlopen(std::getenv("NCCL_PROFILER_PLUGIN"), RTLD_NOW | RTLD_NOLOAD);
    auto* const want = reinterpret_cast<TestProfilerReset_fn*>(::dlsym(library, "testProfilerWant"));
    ::dlclose(library);  // profiler_ keeps it
    return want;
  }
};

}  // namespace tutti::test
