#include "transport/net/ib/nic/health.h"

#include <utility>

namespace tutti::net::ib {

void NicHealth::portDown(int port) {
  {
    const std::lock_guard lock(mutex_);
    auto& since = downSince_[placeOf(port)];
    if (since == SteadyClock::time_point{}) since = SteadyClock::now();
  }
  changed();
}

void NicHealth::portUp(int port) {
  {
    const std::lock_guard lock(mutex_);
    downSince_[placeOf(port)] = {};
  }
  changed();
}

bool NicHealth::isDown(int port, SteadyClock::time_point* since) const {
  const std::lock_guard lock(mutex_);
  *since = downSince_[placeOf(port)];
  return *since != SteadyClock::time_point{};
}

void NicHealth::deviceFailed(std::string why) {
  {
    const std::lock_guard lock(mutex_);
    device_ = std::move(why);
  }
  changed();
}

std::string NicHealth::deviceFailure() const {
  const std::lock_guard lock(mutex_);
  return device_;
}

void NicHealth::queuePairFailed(std::uint32_t number, std::string why) {
  {
    const std::lock_guard lock(mutex_);
    queuePairs_[number] = std::move(why);
  }
  changed();
}

std::string NicHealth::failureOf(std::uint32_t queuePair) const {
  const std::lock_guard lock(mutex_);
  const auto found = queuePairs_.find(queuePair);
  return found == queuePairs_.end() ? std::string() : found->second;
}

void NicHealth::forget(std::uint32_t queuePair) {
  const std::lock_guard lock(mutex_);
  queuePairs_.erase(queuePair);
}

}  // namespace tutti::net::ib
