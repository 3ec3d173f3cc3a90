// Which channels will work for a plan, said to those who tell profilers of it (comm/launch/channel_events.h).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "comm/enqueue/events/told_operations.h"
#include "comm/plan/plan.h"

struct ncclComm;

namespace tutti::plugin {
class EventSink;
}

namespace tutti::comm {

class ChannelEvents;
struct StampedLaunch;

/// The channels of one plan, which may be launched again and again where a graph has it; at first none.
class ExpectedChannels {
 public:
  /// From now on those of `plan`, whose kernels are told where to write when they work. None, where nobody wants to
  /// hear of channels, or there is no memory for it, of which an INFO line speaks.
  void set(ncclComm& comm, std::span<const ToldOperation> told, Plan& plan);
  /// None again; keeps its storage.
  void clear();

  /// Before its kernels are launched, once.
  void expect(std::span<void* const> handles);
  /// Before they are replayed. `handles`: of the operations' own events.
  void expectReplay(std::span<void* const> handles);

 private:
  struct Entry {
    std::size_t operation = 0;  ///< whose it is, of `told`
    int channel = 0;
    std::size_t stamp = 0;
  };
  void addWorks(int rank, const PlannedLaunch& launch, std::size_t stamps, OperationFinder& finder);
  Status stamp(ncclComm& comm, Plan& plan, std::size_t stamps);
  void fill(std::span<void* const> handles) const;

  std::vector<Entry> entries_;
  std::shared_ptr<plugin::EventSink> sink_;
  std::shared_ptr<ChannelEvents> events_;
  std::shared_ptr<StampedLaunch> launched_;
};

}  // namespace tutti::comm
