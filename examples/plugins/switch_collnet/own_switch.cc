#include "own_switch.h"

namespace switch_collnet {

std::shared_ptr<OwnSwitch> OwnSwitch::get(Address host, std::string& why) {
  static std::mutex mutex;
  static std::weak_ptr<OwnSwitch> current;
  const std::lock_guard lock(mutex);
  if (auto there = current.lock()) return there;
  Fd listener = listenAt(host);
  if (!listener.valid()) {
    why = "no socket for a switch at " + host.text() + ": " + std::strerror(errno);
    return nullptr;
  }
  auto made = std::make_shared<OwnSwitch>(host, std::move(listener));
  current = made;
  return made;
}

OwnSwitch::~OwnSwitch() {
  if (switch_ != nullptr) switch_->stop();
  if (thread_.joinable()) thread_.join();
}

void OwnSwitch::serve(const Faults& faults) {
  const std::lock_guard lock(mutex_);
  if (switch_ != nullptr) return;
  switch_ = std::make_unique<Switch>(std::move(listener_), faults);
  thread_ = std::thread([this] { switch_->run(); });
}

}  // namespace switch_collnet
