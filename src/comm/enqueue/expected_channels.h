// Which channels will work for a plan, said to those who tell profilers of it (comm/launch/channel_events.h).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/enqueue/told_operations.h"
#include "comm/launch/channel_events.h"
#include "comm/plan/plan.h"

struct ncclComm;

namespace tutti::comm {

/// The channels of one plan, which may be launched again and again. Does not touch the communicator after its
/// constructor.
class ExpectedChannels {
 public:
  /// Nothing.
  ExpectedChannels() = default;
  /// Nothing as well, where nobody wants to hear of channels, or there is no memory for it, of which an INFO line
  /// speaks. Otherwise the kernels of `plan` are told where to write when they work.
  ExpectedChannels(ncclComm& comm, std::span<const ToldOperation> told, Plan& plan);

  bool empty() const { return entries_.empty(); }
  /// Before its kernels are launched, or replayed. `handles`: of the operations' own events.
  void expect(std::span<void* const> handles, bool replay) const;

 private:
  struct Entry {
    std::size_t operation = 0;  ///< whose it is, of `told`
    int channel = 0;
    std::size_t stamp = 0;
  };
  void addWorks(int rank, const PlannedLaunch& launch, std::size_t stamps, OperationFinder& finder);
  Status stamp(ncclComm& comm, Plan& plan, std::size_t stamps);

  std::vector<Entry> entries_;
  std::shared_ptr<plugin::EventSink> sink_;
  std::shared_ptr<ChannelEvents> events_;
  std::shared_ptr<const Stamps> stamps_;
};

}  // namespace tutti::comm
