#include "proxy/ctrl_events.h"

#include "plugin/event_mask.h"
#include "plugin/profiler.h"

namespace tutti::proxy {

namespace {

bool wanted() {
  return (plugin::eventMask() & ncclProfileProxyCtrl) != 0;
}

}  // namespace

void* CtrlEvents::begin() const {
  plugin::Event event{};
  event.type = ncclProfileProxyCtrl;
  return sink_->start(event);
}

void CtrlEvents::tellTurn() const {
  if (!wanted()) return;
  void* const handle = begin();
  plugin::EventStateArgs none{};
  sink_->state(handle, idle_ ? ncclProfilerProxyCtrlIdle : ncclProfilerProxyCtrlActive, &none);
  sink_->stop(handle);
}

void CtrlEvents::fallAsleep() {
  if (!wanted()) return;
  asleep_ = true;
  handle_ = begin();
  plugin::EventStateArgs none{};
  sink_->state(handle_, ncclProfilerProxyCtrlSleep, &none);
}

void CtrlEvents::wakeUp() {
  asleep_ = false;
  plugin::EventStateArgs none{};
  sink_->state(handle_, ncclProfilerProxyCtrlWakeup, &none);
  sink_->stop(std::exchange(handle_, nullptr));
}

}  // namespace tutti::proxy
