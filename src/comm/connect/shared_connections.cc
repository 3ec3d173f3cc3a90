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

/// Waits until the peer has taken what was sent to it, the deadline, or the abort, which may be null: whether it has.
Result<bool> isTaken(const gpu::Device& device, const SharedKey& key, const SharedEnd& end, Deadline deadline,
                     const Abort* abort) {
  auto pause = std::chrono::microseconds(20);
  ASSIGN(bool taken, allTaken(device, *end.endpoint, key.direction));
  while (!taken && !deadline.expired() && (abort == nullptr || !abort->raised())) {
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(5000));
    ASSIGN(taken, allTaken(device, *end.endpoint, key.direction));
  }
  return taken;
}

/// An end whose peer has not taken what was sent to it.
void giveUp(const SharedEnd& end, const std::string& about, int channel) {
  if (const proxy::ProgressTask* const task = end.endpoint->task(); task != nullptr) {
    return warn("{}: its last communicator ends, and the peer may miss what was sent to it: {}", about,
                task->describe());
  }
  warn(
      "{}: a peer has not taken what was sent to it over {}, channel {}; memory that it may write to stays allocated "
      "until the process ends. Let all ranks finish what they have begun before they destroy their communicators",
      about, end.endpoint->description(), channel);
  GivenUp::instance().add(end.endpoint);
}

}  // namespace

/// An end as the caretaker drives it: when it fails, the others go on.
class SharedConnections::Leftover final : public proxy::ProgressTask {
 public:
  explicit Leftover(proxy::ProgressTask& sender) : sender_(sender) {}
  Result<bool> advance() override {
    if (failed_) return false;
    const ErrorsAsInfo nobodyAsks;
    Result<bool> advanced = sender_.advance();
    if (advanced.ok()) return advanced;
    failed_ = true;
    return false;
  }
  bool quiet() const override { return failed_ || sender_.quiet(); }
  bool presses() const override { return !failed_ && sender_.presses(); }
  void part() override { sender_.part(); }
  bool parted() const override { return sender_.parted(); }
  proxy::TaskCounters counters() const override { return sender_.counters(); }
  std::string describe() const override { return sender_.describe(); }

 private:
  proxy::ProgressTask& sender_;
  bool failed_ = false;  ///< within a round of the engine
};

SharedConnections::SharedConnections() = default;
SharedConnections::~SharedConnections() = default;

SharedEnd SharedConnections::find(const SharedKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = ends_.find(key);
  return found == ends_.end() ? SharedEnd{} : found->second.end;
}

Status SharedConnections::add(const SharedKey& key, SharedEnd end) {
  Kept kept{std::move(end), nullptr};
  const std::lock_guard lock(mutex_);
  // What a receiver has yet to do is for the kernels of who uses it.
  if (key.direction == device::Direction::Send) TRY(leaveToCaretaker(kept));
  Kept& place = ends_[key];
  if (place.leftover != nullptr) caretaker_->remove(place.leftover.get());
  place = std::move(kept);
  return {};
}

Status SharedConnections::leaveToCaretaker(Kept& kept) {
  proxy::ProgressTask* const task = kept.end.endpoint->task();
  if (task == nullptr || kept.leftover != nullptr) return {};
  if (caretaker_ == nullptr) return fail(ncclInternalError, "Nobody drives {}", kept.end.endpoint->description());
  kept.leftover = std::make_unique<Leftover>(*task);
  return caretaker_->add(kept.leftover.get());
}

void SharedConnections::part(std::optional<int> peer) {
  const std::lock_guard lock(mutex_);
  if (caretaker_ == nullptr) return;
  for (auto& [key, kept] : ends_) {
    if (kept.end.endpoint->task() == nullptr || (peer && key.peer != *peer)) continue;
    kept.end.endpoint->task()->part();
    if (!peer) leaveToCaretaker(kept).ignore();
  }
  caretaker_->hold();
  caretaker_->release();
}

bool SharedConnections::parted() const {
  const std::lock_guard lock(mutex_);
  return std::all_of(ends_.begin(), ends_.end(), [](const auto& end) {
    const proxy::ProgressTask* const task = end.second.end.endpoint->task();
    return task == nullptr || task->parted();
  });
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
void SharedConnections::leaveAlone(const Kept& kept) {
  proxy::ProgressTask* const task = kept.end.endpoint->task();
  if (task == nullptr) return;
  if (caretaker_ != nullptr && kept.leftover != nullptr) caretaker_->remove(kept.leftover.get());
  for (proxy::ProgressGroup* const group : groups_) group->remove(task);
}

std::size_t SharedConnections::size() const {
  const std::lock_guard lock(mutex_);
  return ends_.size();
}

std::vector<std::pair<SharedKey, SharedEnd>> SharedConnections::all() const {
  std::vector<std::pair<SharedKey, SharedEnd>> ends;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, kept] : ends_) ends.emplace_back(key, kept.end);
  return ends;
}

Status SharedConnections::awaitTaken(const gpu::Device& device, const std::string& about, milliseconds bound,
                                     const Abort& abort) {
  const Deadline deadline = Deadline::in(bound);
  for (const auto& [key, end] : all()) {
    ASSIGN(const bool taken, isTaken(device, key, end, deadline, &abort));
    TRY(abort.status());
    if (!taken) {
      return fail(
          ncclRemoteError,
          "{}: a peer has not taken what a communicator that has ended sent to it over {}, channel {}: that rank "
          "has not issued the matching operation, or hangs. Use ncclCommAbort to end a communicator whose "
          "operations cannot complete; TUTTI_BOOTSTRAP_TIMEOUT_SEC sets the time allowed",
          about, end.endpoint->description(), key.channel);
    }
    end.endpoint->settle();
  }
  return {};
}

Status SharedConnections::settle(const gpu::Device& device, const std::string& about, milliseconds bound) {
  const Deadline deadline = Deadline::in(bound);
  for (const auto& [key, end] : all()) {
    ASSIGN(const bool taken, isTaken(device, key, end, deadline, nullptr));
    taken ? end.endpoint->settle() : giveUp(end, about, key.channel);
  }
  return {};
}

void SharedConnections::detach() {
  const std::lock_guard lock(mutex_);
  for (auto& [key, kept] : ends_) {
    leaveAlone(kept);
    kept.end.endpoint->detach();
  }
}

void SharedConnections::close(device::Direction direction) {
  std::vector<Kept> closed;
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
