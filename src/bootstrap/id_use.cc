#include "bootstrap/id_use.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "bootstrap/bootstrap.h"
#include "bootstrap/unique_id.h"

namespace tutti::bootstrap {
namespace {

/// Roots that stay for latecomers; beyond, the oldest ends at once.
constexpr std::size_t kMostStaying = 4;

struct Registered {
  std::weak_ptr<RunningRoot> root;
  pid_t process = 0;  ///< a child made by fork() has the entry, and no root
  int users = 0;
  bool failed = false;
};

struct Registry {
  std::mutex mutex;
  std::atomic<pid_t> process{0};  ///< whose roots these are
  std::map<Key, Registered> ids;
  std::deque<std::weak_ptr<RunningRoot>> staying;
};

Registry& registry() {
  // Never destroyed: joins of detached threads may end after main().
  static auto* const all = new Registry;
  return *all;
}

std::shared_ptr<RunningRoot> runningRoot(const Registered& entry) {
  return entry.process == ::getpid() ? entry.root.lock() : nullptr;
}

/// The registry's lock is held.
void letStay(Registry& all, const std::shared_ptr<RunningRoot>& root) {
  root->leave();
  std::erase_if(all.staying, [](const auto& one) { return one.expired(); });
  all.staying.push_back(root);
  if (all.staying.size() <= kMostStaying) return;
  if (const auto oldest = all.staying.front().lock()) oldest->end();
  all.staying.pop_front();
}

}  // namespace

void registerRoot(const Key& secret, const std::shared_ptr<RunningRoot>& root) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.ids, [](const auto& entry) { return entry.second.users == 0 && !runningRoot(entry.second); });
  all.ids[secret] = {root, ::getpid(), 0, false};
  all.process.store(::getpid());
}

void endRoots(Deadline deadline) {
  Registry& all = registry();
  if (all.process.load() != ::getpid()) return;  // before the lock, which may have been held when this was forked
  std::vector<std::shared_ptr<RunningRoot>> roots;
  {
    const std::lock_guard lock(all.mutex);
    for (const auto& [secret, entry] : all.ids) {
      if (auto root = runningRoot(entry)) roots.push_back(std::move(root));
    }
  }
  for (const auto& root : roots) root->endWithProcess();
  const auto ended = [](const auto& root) { return root->hasEnded(); };
  while (!std::all_of(roots.begin(), roots.end(), ended) && !deadline.expired()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

IdUse::IdUse(const std::vector<UniqueId>& ids) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const UniqueId& id : ids) {
    const auto entry = all.ids.find(id.secret);
    if (id.fixedAddress || entry == all.ids.end() || !runningRoot(entry->second)) continue;
    ++entry->second.users;
    secrets_.push_back(id.secret);
  }
}

void IdUse::own(std::shared_ptr<RunningRoot> root) {
  owned_.push_back(std::move(root));
}

void IdUse::failed(const Notice& why) {
  failed_ = true;
  for (const auto& root : owned_) root->tell(why);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const Key& secret : secrets_) {
    Registered& entry = all.ids.at(secret);
    entry.failed = true;
    if (const auto root = runningRoot(entry)) root->tell(why);
  }
}

void IdUse::release() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const auto& root : std::exchange(owned_, {})) {
    if (failed_) letStay(all, root);
  }
  for (const Key& secret : std::exchange(secrets_, {})) {
    Registered& entry = all.ids.at(secret);
    if (--entry.users > 0 || !entry.failed) continue;
    if (const auto root = runningRoot(entry)) letStay(all, root);
  }
}

}  // namespace tutti::bootstrap
