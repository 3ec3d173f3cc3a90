#include "comm/connect/shared_connections.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/never_destroyed.h"
#include "comm/connect/consumption.h"
#include "proxy/group.h"
#include "proxy/task.h"
#include "transport/common/transport.h"

namespace tutti::comm {

namespace {

/// Ends whose memory peers may write to for ever.
class GivenUp {
 public:
  static GivenUp& instance() {
    static NeverDestroyed<GivenUp> all;
    return all.get();
  }
  void add(std::shared_ptr<transport::Endpoint> end) {
    const std::lock_guard lock(mutex_);
    ends_.push_back(std::move(end));
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<transport::Endpoint>> ends_;
};

}  // namespace

SharedConnections::~SharedConnections() = default;

SharedEnd SharedConnections::find(const SharedKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = ends_.find(key);
  return found == ends_.end() ? SharedEnd{} : found->second;
}

Status SharedConnections::add(const SharedKey& key, SharedEnd end) {
  const std::lock_guard lock(mutex_);
  if (proxy::ProgressTask* const task = end.endpoint->task(); task != nullptr) {
    if (caretaker_ == nullptr) return fail(ncclInternalError, "Nobody drives {}", end.endpoint->description());
    TRY(caretaker_->add(task));
  }
  if (const auto before = ends_.find(key); before != ends_.end() && caretaker_ != nullptr) {
    caretaker_->remove(before->second.endpoint->task());
  }
  ends_.insert_or_assign(key, std::move(end));
  return {};
}

void SharedConnections::driveBy(std::unique_ptr<proxy::ProgressGroup> caretaker) {
  const std::lock_guard lock(mutex_);
  caretaker_ = std::move(caretaker);
}

void SharedConnections::alsoDrivenBy(proxy::ProgressGroup* group) {
  const std::lock_guard lock(mutex_);
  groups_.push_back(group);
}

void SharedConnections::notDrivenBy(const proxy::ProgressGroup* group) {
  const std::lock_guard lock(mutex_);
  std::erase(groups_, group);
}

void SharedConnections::tend() {
  const std::lock_guard lock(mutex_);
  if (caretaker_ == nullptr) return;
  caretaker_->hold();
  caretaker_->release();
}

bool SharedConnections::rests() const {
  const std::lock_guard lock(mutex_);
  return caretaker_ == nullptr || caretaker_->rests();
}

void SharedConnections::stopCaring() {
  const std::lock_guard lock(mutex_);
  caretaker_.reset();
}

/// Waits for what the progress engine is about to do with it.
void SharedConnections::leaveAlone(proxy::ProgressTask* task) {
  if (task == nullptr) return;
  if (caretaker_ != nullptr) caretaker_->remove(task);
  for (proxy::ProgressGroup* const group : groups_) group->remove(task);
}

std::size_t SharedConnections::size() const {
  const std::lock_guard lock(mutex_);
  return ends_.size();
}

Status SharedConnections::settle(const gpu::Device& device, const std::string& about, milliseconds bound) {
  const std::lock_guard lock(mutex_);
  const Deadline deadline = Deadline::in(bound);
  for (auto& [key, end] : ends_) {
    auto pause = std::chrono::microseconds(20);
    ASSIGN(bool consumed, allTaken(device, *end.endpoint, key.direction));
    while (!consumed && !deadline.expired()) {
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::microseconds(5000));
      ASSIGN(consumed, allTaken(device, *end.endpoint, key.direction));
    }
    if (consumed) {
      end.endpoint->settle();
      continue;
    }
    if (const proxy::ProgressTask* const task = end.endpoint->task(); task != nullptr) {
      warn("{}: its last communicator ends, and the peer may miss what was sent to it: {}", about, task->describe());
      continue;
    }
    warn(
        "{}: a peer has not taken what was sent to it over {}, channel {}; memory that it may write to stays allocated "
        "until the process ends. Let all ranks finish what they have begun before they destroy their communicators",
        about, end.endpoint->description(), key.channel);
    GivenUp::instance().add(end.endpoint);
  }
  return {};
}

void SharedConnections::detach() {
  const std::lock_guard lock(mutex_);
  for (auto& [key, end] : ends_) {
    leaveAlone(end.endpoint->task());
    end.endpoint->detach();
  }
}

void SharedConnections::close(device::Direction direction) {
  std::vector<SharedEnd> closed;
  const std::lock_guard lock(mutex_);
  for (auto place = ends_.begin(); place != ends_.end();) {
    if (place->first.direction != direction) {
      ++place;
      continue;
    }
    closed.push_back(std::move(place->second));
    place = ends_.erase(place);
  }
}

}  // namespace tutti::comm
