// What ranks of one process share by address.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/never_destroyed.h"

namespace tutti::transport {

/// All objects of a type that this process has, by an address that is unique among the living. Any thread.
template <class T>
class ProcessDirectory {
 public:
  static ProcessDirectory& instance() {
    static NeverDestroyed<ProcessDirectory> directory;
    return directory.get();
  }
  void add(std::uint64_t address, const std::shared_ptr<T>& object) {
    const std::lock_guard lock(mutex_);
    objects_[address] = object;
  }
  /// Before the address can be somebody else's.
  void remove(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    objects_.erase(address);
  }
  /// Null where there is none, or none that lives.
  std::shared_ptr<T> at(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    const auto known = objects_.find(address);
    return known == objects_.end() ? nullptr : known->second.lock();
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<T>> objects_;
};

}  // namespace tutti::transport
