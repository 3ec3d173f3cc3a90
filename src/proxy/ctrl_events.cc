#include "proxy/ctrl_events.h"

namespace tutti::proxy {

void* CtrlEvents::begin() {
  plugin::Event event{};
  event.type = ncclProfileProxyCtrl;
  return sink_->start(event);
}

void CtrlEvents::tellOnce(plugin::EventState state) {
  void* const handle = begin();
  plugin::EventStateArgs none{};
  sink_->state(handle, state, &none);
  sink_->stop(handle);
}

void CtrlEvents::fallAsleep() {
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
