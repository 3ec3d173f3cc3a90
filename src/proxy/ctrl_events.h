// What profilers hear of the host thread itself: the events ProxyCtrl, of one communicator's part in it.
#pragma once

#include <memory>
#include <utility>

namespace tutti::plugin {
class EventSink;
}

namespace tutti::proxy {

/// Used by one thread at a time. Each word is one load where nobody listens.
class CtrlEvents {
 public:
  /// `sink`: null where nobody ever does.
  explicit CtrlEvents(std::shared_ptr<plugin::EventSink> sink) : sink_(std::move(sink)) {}
  CtrlEvents(const CtrlEvents&) = delete;
  CtrlEvents& operator=(const CtrlEvents&) = delete;
  ~CtrlEvents() { wakes(); }

  /// A turn in which something, or nothing, could be done.
  void turn(bool idle) {
    if (sink_ == nullptr || idle == idle_) [[likely]]
      return;
    idle_ = idle;
    tellTurn();
  }
  /// Nothing is left to do.
  void sleeps() {
    if (sink_ != nullptr && !asleep_) fallAsleep();
  }
  /// There is something again.
  void wakes() {
    if (asleep_) wakeUp();
  }

 private:
  void tellTurn() const;
  void fallAsleep();
  void wakeUp();
  void* begin() const;

  const std::shared_ptr<plugin::EventSink> sink_;
  bool idle_ = false;
  bool asleep_ = false;
  void* handle_ = nullptr;  ///< while asleep
};

}  // namespace tutti::proxy
