// What a rank of a random life holds: its communicators and graphs, for both of its threads.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "lifecycle/generator.h"
#include "lifecycle/shared.h"
#include "lifecycle/work.h"

namespace lifecycle {

struct Recording {
  Slot slot;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
};

/// Handles keep their address until they are dropped. Any thread; each handle is used by one at a time.
class Seat {
 public:
  ncclComm_t& handle(int comm) {
    const std::lock_guard lock(mutex_);
    return handles_[comm];
  }
  /// Null where there is none (any more).
  ncclComm_t find(int comm) {
    const std::lock_guard lock(mutex_);
    const auto found = handles_.find(comm);
    return found == handles_.end() ? nullptr : found->second;
  }
  void drop(int comm) {
    const std::lock_guard lock(mutex_);
    handles_.erase(comm);
  }
  Recording& recording(int number) {
    const std::lock_guard lock(mutex_);
    return recordings_[number];
  }
  /// Null where this rank has not registered the buffer.
  void*& registration(int number) {
    const std::lock_guard lock(mutex_);
    return registrations_[number];
  }
  void dropRegistration(int number) {
    const std::lock_guard lock(mutex_);
    registrations_.erase(number);
  }
  void dropRecording(int number) {
    const std::lock_guard lock(mutex_);
    recordings_.erase(number);
  }

 private:
  std::mutex mutex_;
  std::map<int, ncclComm_t> handles_;
  std::map<int, Recording> recordings_;
  std::map<int, void*> registrations_;
};

}  // namespace lifecycle
