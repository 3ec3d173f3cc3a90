#include "base/threads/activity.h"

#include <memory>
#include <mutex>
#include <vector>

#include "base/never_destroyed.h"

namespace tutti {

namespace {

struct Slots {
  std::mutex mutex;
  std::vector<std::unique_ptr<ActivitySlot>> all;  // guarded by mutex
  std::vector<ActivitySlot*> unused;               // likewise; has room for all of them
};

Slots& slots() {
  static NeverDestroyed<Slots> instance;
  return instance.get();
}

/// Of threads that have none: without memory for it, or on their way out.
constinit ActivitySlot nobodys;
thread_local constinit ActivitySlot* ownSlot = nullptr;

ActivitySlot& take() {
  Slots& shared = slots();
  const std::lock_guard lock(shared.mutex);
  if (shared.unused.empty()) {
    shared.unused.reserve(shared.all.size() + 1);
    return *shared.all.emplace_back(std::make_unique<ActivitySlot>());
  }
  ActivitySlot* const slot = shared.unused.back();
  shared.unused.pop_back();
  return *slot;
}

}  // namespace

/// Gives a thread's slot back when it ends.
struct OwnedSlot {
  ActivitySlot& slot = take();
  ~OwnedSlot() {
    ownSlot = &nobodys;
    slot.wait_.store(nullptr, std::memory_order_relaxed);
    slot.call_.store(nullptr, std::memory_order_relaxed);
    slot.inCall_.store(false, std::memory_order_relaxed);
    Slots& shared = slots();
    const std::lock_guard lock(shared.mutex);
    shared.unused.push_back(&slot);
  }
};

ActivitySlot& ActivitySlot::own() noexcept {
  if (ownSlot != nullptr) [[likely]]
    return *ownSlot;
  ownSlot = &nobodys;
  try {
    thread_local OwnedSlot owned;
    ownSlot = &owned.slot;
  } catch (...) {
  }
  return *ownSlot;
}

void ActivitySlot::forEach(const std::function<void(const ActivitySlot& slot)>& look) {
  std::vector<const ActivitySlot*> all;
  {
    Slots& shared = slots();
    const std::lock_guard lock(shared.mutex);
    for (const auto& slot : shared.all) all.push_back(slot.get());
  }
  for (const ActivitySlot* slot : all) look(*slot);
}

Activity ActivitySlot::read() const {
  Activity now;
  now.calls = calls_.load(std::memory_order_acquire);
  now.wait = wait_.load(std::memory_order_relaxed);
  now.peer = peer_.load(std::memory_order_relaxed);
  now.call = call_.load(std::memory_order_relaxed);
  now.callee = callee_.load(std::memory_order_relaxed);
  now.device = device_.load(std::memory_order_relaxed);
  now.inCall = inCall_.load(std::memory_order_relaxed);
  return now;
}

WaitNote::WaitNote(const char* what, int peer) noexcept
    : slot_(ActivitySlot::own()),
      before_(slot_.wait_.load(std::memory_order_relaxed)),
      peerBefore_(slot_.peer_.load(std::memory_order_relaxed)) {
  slot_.call_.store(nullptr, std::memory_order_relaxed);
  now(what, peer);
}

WaitNote::~WaitNote() {
  now(before_, peerBefore_);
}

void WaitNote::now(const char* what, int peer) noexcept {
  slot_.peer_.store(peer, std::memory_order_relaxed);
  slot_.wait_.store(what, std::memory_order_relaxed);
}

}  // namespace tutti
