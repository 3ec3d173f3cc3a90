// Handles the caller holds are addresses; a registry tells live ones from stale or invented ones.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tutti::softgpu {

/// Live objects of one type by handle. Thread-safe; objects live on while somebody holds a shared_ptr.
template <class T>
class Registry {
 public:
  T* add(std::shared_ptr<T> object) {
    std::lock_guard<std::mutex> guard(lock_);
    T* handle = object.get();
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  /// Null for a handle that is not (or no longer) registered.
  std::shared_ptr<T> find(const void* handle) const {
    std::lock_guard<std::mutex> guard(lock_);
    const auto it = objects_.find(handle);
    return it == objects_.end() ? nullptr : it->second;
  }
  /// Forgets the handle and gives the object back, null if there was none.
  std::shared_ptr<T> take(const void* handle) {
    std::lock_guard<std::mutex> guard(lock_);
    auto taken = objects_.extract(handle);
    return taken.empty() ? nullptr : std::move(taken.mapped());
  }
  std::vector<std::shared_ptr<T>> all() const {
    std::lock_guard<std::mutex> guard(lock_);
    std::vector<std::shared_ptr<T>> result;
    for (const auto& [handle, object] : objects_) result.push_back(object);
    return result;
  }

 private:
  mutable std::mutex lock_;
  std::unordered_map<const void*, std::shared_ptr<T>> objects_;
};

}  // namespace tutti::softgpu
