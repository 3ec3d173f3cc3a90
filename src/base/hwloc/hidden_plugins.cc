#include "base/hwloc/hidden_plugins.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <vector>

#include "base/never_destroyed.h"

namespace tutti {
namespace {

// A folder that cannot be: what would be below /dev/null.
char noPlugins[] = "HWLOC_PLUGINS_PATH=/dev/null/none";

/// Environments that were given to the process, each ended by a null. They are never freed, for another thread may
/// still be looking a name up in one; there are as many as the application has had different ones.
std::list<std::vector<char*>>& copies() {
  static NeverDestroyed<std::list<std::vector<char*>>> all;
  return all.get();
}

std::mutex& oneAtATime() {
  static NeverDestroyed<std::mutex> mutex;
  return mutex.get();
}

char** withoutPlugins(char** before) {
  std::vector<char*> list = {noPlugins};
  for (char** entry = before; entry != nullptr && *entry != nullptr; ++entry) list.push_back(*entry);
  list.push_back(nullptr);
  const auto known = std::find(copies().begin(), copies().end(), list);
  return known != copies().end() ? known->data() : copies().emplace_back(std::move(list)).data();
}

/// As unsetenv() does it, but only our own entry.
void takeOut(char** list) {
  for (; list != nullptr && *list != nullptr; ++list) {
    if (*list != noPlugins) continue;
    for (; *list != nullptr; ++list) *list = list[1];
    return;
  }
}

}  // namespace

HiddenPlugins::HiddenPlugins() : lock_(oneAtATime()) {
  const std::atomic_ref<char**> current(environ);
  before_ = current.load();
  with_ = withoutPlugins(before_);
  current.store(with_);
}

HiddenPlugins::~HiddenPlugins() {
  const std::atomic_ref<char**> current(environ);
  char** now = with_;
  if (!current.compare_exchange_strong(now, before_)) takeOut(now);
}

}  // namespace tutti
