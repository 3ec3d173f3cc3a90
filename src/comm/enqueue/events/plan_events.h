// What profilers are told of the operations of a plan, as often as it runs (docs/profiling.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "comm/enqueue/events/expected_channels.h"
#include "comm/enqueue/events/expected_steps.h"
#include "comm/enqueue/events/told_operations.h"

struct ncclComm;

namespace tutti::plugin {
class EventSink;
}

namespace tutti::comm {

struct Decision;
struct Op;
struct Plan;

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

/// As PlanEvents would number collectives of which nobody wants to hear, without any allocation.
void countUnheard(plugin::EventSink& sink, std::span<const Op> ops);

}  // namespace tutti::comm
