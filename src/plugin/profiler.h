// What the library tells of its work, to whoever listens: a profiler plugin of any version, and perhaps others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "nccl_profiler.h"

namespace tutti::plugin {

using Event = ncclProfilerEventDescr_v6_t;
using EventState = ncclProfilerEventState_v6_t;
using EventStateArgs = ncclProfilerEventStateArgs_v6_t;

/// Which kinds have to be told so that those of `mask` have their parents.
constexpr int withParents(int mask) {
  constexpr int kNet = ncclProfileProxyOp | ncclProfileProxyStep | ncclProfileNetPlugin;
  constexpr int kBelow = kNet | ncclProfileKernelCh;
  constexpr int kCe = ncclProfileCeColl | ncclProfileCeSync | ncclProfileCeBatch;
  const auto wants = [mask](int kinds) { return (mask & kinds) != 0; };
  int told = mask;
  if (wants(~ncclProfileProxyCtrl)) told |= ncclProfileGroupApi;
  if (wants(ncclProfileColl | kBelow | kCe)) told |= ncclProfileCollApi;
  if (wants(ncclProfileP2p | kBelow)) told |= ncclProfileP2pApi;
  if (wants(ncclProfileColl | ncclProfileP2p | kBelow)) told |= ncclProfileGroup;
  if (wants(kBelow)) told |= ncclProfileColl | ncclProfileP2p;
  if (wants(kNet)) told |= ncclProfileProxyOp;
  if (wants(ncclProfileNetPlugin)) told |= ncclProfileProxyStep;
  if (wants(kCe)) told |= ncclProfileCeColl;
  return told;
}

/// Hears of one communicator's events. Any thread, at the same time; its end comes after the last event's.
class EventSink {
 public:
  EventSink() = default;
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;
  virtual ~EventSink() = default;

  /// An event begins. Its handle, for stop(), state() and as parent of others; null: nobody is interested. `event` is
  /// only read.
  virtual void* start(Event& event) = 0;
  virtual void stop(void* handle) = 0;
  /// `args` is null for the states of groups.
  virtual void state(void* handle, EventState state, EventStateArgs* args) = 0;

  /// Collectives of one function, by ncclFunc_t, are numbered from 0, whether anybody hears of them or not. Used by one
  /// thread at a time, as the communicator is.
  std::uint64_t nextNumber(std::size_t function) { return numbers_.at(function)++; }

 private:
  std::array<std::uint64_t, 5> numbers_{};
};

/// What a request of a network is for, as its plugin names it when it tells of what it does (phandle). Any thread.
class NetEventParent {
 public:
  /// From now on `sink` hears of the request, as of a part of the step with that handle.
  void set(std::shared_ptr<EventSink> sink, void* step, int rank);
  /// Nobody does, as at first.
  void clear();
  /// Begins an event of kind NetPlugin; null: nobody is interested.
  void* start(std::int64_t pluginId, void* data);

 private:
  std::mutex mutex_;
  std::shared_ptr<EventSink> sink_;
  void* step_ = nullptr;
  int rank_ = 0;
};

/// The callback that network plugins tell of their events by (ncclProfilerCallback_t). `parent`: a NetEventParent;
/// null: nobody is interested. Any thread.
ncclResult_t netEvent(void** eventHandle, int type, void* parent, std::int64_t pluginId, void* data);

/// What a listener is told of a communicator.
struct ProfiledComm {
  std::uint64_t commId = 0;  ///< equal on all ranks
  std::string name;          ///< the user's; empty: none
  int nNodes = 1;
  int nRanks = 1;
  int rank = 0;
};

/// The profiler plugin as `setting` (NCCL_PROFILER_PLUGIN) names it, loaded if it is not yet, and told of the
/// communicator. Null: there is none, or it has refused, of which INFO lines speak. The plugin hears of the
/// communicator's end, and is unloaded after the last one, when the result is gone.
std::shared_ptr<EventSink> openProfiler(const std::string& setting, const ProfiledComm& comm);

}  // namespace tutti::plugin
