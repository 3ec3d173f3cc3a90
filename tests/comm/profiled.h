// Communicators of a process with a profiler plugin that remembers what it is told, which NCCL_PROFILER_PLUGIN names.
#pragma once

#include <barrier>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "comm/world.h"
#include "nccl_profiler.h"
#include "plugin/recorded_profiler.h"

namespace tutti::test {

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

  /// Every event that has begun has ended once, after its states, and has a parent that began before.
  void expectWhole() const {
    std::set<long> open;
    std::set<long> begun;
    for (const Record& one : profiler_.records()) {
      const std::string call = one.call;
      if (call == "start") {
        EXPECT_TRUE(begun.insert(one.handle).second);
        open.insert(one.handle);
        EXPECT_TRUE(one.parent == 0 || begun.contains(one.parent)) << "of " << one.type << ": " << one.text;
        EXPECT_GT(one.context, 0);
      } else if (call == "state") {
        EXPECT_TRUE(open.contains(one.handle)) << "state " << one.type;
      } else if (call == "stop") {
        EXPECT_EQ(open.erase(one.handle), 1U);
      }
    }
    EXPECT_TRUE(open.empty());
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
};

}  // namespace tutti::test
