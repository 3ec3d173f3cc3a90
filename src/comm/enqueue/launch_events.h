// What profilers are told of a plan as it is launched, or as a graph with it is replayed (docs/profiling.md).
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "comm/enqueue/expected_channels.h"
#include "comm/enqueue/expected_steps.h"
#include "comm/launch/prepared_launch.h"
#include "comm/plan/op.h"
#include "comm/plan/plan.h"
#include "plugin/profiler.h"

struct ncclComm;

namespace tutti::comm {

/// The events Group, Coll and P2p of one plan, and what host threads will tell of it, which may be told again and
/// again; at first nothing. Any thread, one at a time.
class PlanEvents {
 public:
  /// Of operations with Op::events; the collectives are numbered, whoever listens. `plan` is theirs: its kernels are
  /// told where to write when they work, if somebody wants to know.
  void set(ncclComm& comm, std::span<const Op> ops, Plan& plan);
  /// Nothing again; holds nothing of the communicator, but keeps its storage.
  void clear();

  bool empty() const { return !tellsGroup_ && operations_.empty() && expected_.empty(); }
  /// The groups first, and what is in them in the order of the calls.
  void start();
  /// Of what start() began.
  const std::vector<void*>& handles() const { return handles_; }
  /// Whether host threads have anything to do.
  bool expects() const { return !expected_.empty(); }
  /// They hear of operations with these handles, before kernels of them run: launch after launch. Any thread.
  void expect(std::span<void* const> handles) const { expected_.expect(handles); }
  /// The channels of its kernels will be told of, as parts of what start() began; not where tell() is used.
  void expectChannels() { channels_.expect(handles_); }
  void stop();
  /// Both, for a replay: copies of a graph may be replayed at the same time.
  void tell();

 private:
  void addCollective(const Op& op, const Decision& decision, std::uint64_t number);
  void addMessages(const Op& op, const Plan& plan, int nRanks);
  void addMessage(const Op& op, const Plan& plan, bool sends, int peer, std::size_t block);

  std::shared_ptr<plugin::EventSink> sink_;
  int rank_ = 0;
  bool tellsGroup_ = false;
  std::vector<ToldOperation> operations_;
  ExpectedPlan expected_;
  ExpectedChannels channels_;
  std::vector<void*> handles_;
  void* group_ = nullptr;
  std::mutex replays_;  ///< held by tell()
};

/// Tells of one launch of a plan, as long as it lives, and of each kernel in it.
class LaunchEvents final : public LaunchListener {
 public:
  /// `group`: the handle of the group's own event. Nothing is told where the communicator has no listener. What is
  /// captured is told at every replay, from a thread of the driver's, but for its kernels. `kept`: events for it to
  /// use, or null; of no use to anybody else meanwhile.
  LaunchEvents(ncclComm& comm, std::span<const Op> ops, Plan& plan, void* group, std::shared_ptr<PlanEvents>& kept);
  LaunchEvents(const LaunchEvents&) = delete;
  LaunchEvents& operator=(const LaunchEvents&) = delete;
  ~LaunchEvents() override;

  /// Null: nobody wants to hear of the launch itself.
  LaunchListener* listener() { return kernels_ || plan_ != nullptr ? this : nullptr; }
  Status first(CUstream stream, CUgraph captured) override;
  void* before(CUstream stream) override;
  void after(void* handle) override;

 private:
  Status callFirst(CUstream stream, CUhostFn function, void* argument) const;

  ncclComm& comm_;
  void* group_;
  bool kernels_ = false;
  std::shared_ptr<PlanEvents> plan_;  ///< null: nothing to tell
  std::shared_ptr<PlanEvents>& kept_;
  bool started_ = false;
};

}  // namespace tutti::comm
