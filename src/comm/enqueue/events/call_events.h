// What profilers are told of calls and groups as they are made (docs/profiling.md).
#pragma once

#include <memory>

#include "plugin/event_mask.h"

struct ncclComm;

namespace tutti::plugin {
class EventSink;
}

namespace tutti::comm {

struct Op;

/// The event of a group: from its first call until its operations are over. Its communicator's listener stays until
/// then. One thread at a time.
class GroupEvent {
 public:
  GroupEvent() = default;
  GroupEvent(GroupEvent&& other) noexcept;
  GroupEvent& operator=(GroupEvent&& other) noexcept;
  ~GroupEvent() { stop(); }

  /// Unless it has begun. `depth`: of nested groups.
  void begin(const ncclComm& comm, bool captured, int depth);
  /// The group ends, and what it has collected is carried out.
  void endBegins() const;
  void stop();
  /// Null: nobody is interested.
  void* handle() const { return handle_; }

 private:
  std::shared_ptr<plugin::EventSink> sink_;  ///< not null: it has begun
  void* handle_ = nullptr;
};

/// The event of a call, of kind CollApi or P2pApi: until stop(), or the end of its scope.
class CallEvent {
 public:
  /// Fills Op::events. Begins the group's event first; `depth` of nested groups, 1 for a call outside of any.
  CallEvent(const ncclComm& comm, Op& op, GroupEvent& group, int depth) {
    if (const int mask = plugin::eventMask(); mask != 0) [[unlikely]] {
      begin(comm, op, group, depth, mask);
    }
  }
  CallEvent(const CallEvent&) = delete;
  CallEvent& operator=(const CallEvent&) = delete;
  ~CallEvent() { stop(); }
  void stop();

 private:
  void begin(const ncclComm& comm, Op& op, GroupEvent& group, int depth, int mask);

  plugin::EventSink* sink_ = nullptr;
  void* handle_ = nullptr;
};

}  // namespace tutti::comm
