#include "base/hwloc/hidden_plugins.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <vector>

#include "base/never_destroyed.h"

namespace tutti {

/// An environment that was given to the process. Who sets or unsets a name changes the entries where they are.
struct EnvironmentCopy {
  std::vector<char*> entries;  ///< ended by a null
  const std::vector<char*> made = entries;
  bool changed() const { return entries != made; }
};

namespace {

// A folder that cannot be: what would be below /dev/null.
char noPlugins[] = "HWLOC_PLUGINS_PATH=/dev/null/none";

/// All that there were. They are never freed, for another thread may still be looking a name up in one; there are as
/// many as the application has had different ones.
std::list<EnvironmentCopy>& copies() {
  static NeverDestroyed<std::list<EnvironmentCopy>> all;
  return all.get();
}

std::mutex& oneAtATime() {
  static NeverDestroyed<std::mutex> mutex;
  return mutex.get();
}

EnvironmentCopy& withoutPlugins(char** before) {
  std::vector<char*> list = {noPlugins};
  for (char** entry = before; entry != nullptr && *entry != nullptr; ++entry) list.push_back(*entry);
  list.push_back(nullptr);
  const auto known = std::find_if(copies().begin(), copies().end(), [&list](const EnvironmentCopy& copy) {
    return !copy.changed() && copy.made == list;
  });
  return known != copies().end() ? *known : copies().emplace_back(EnvironmentCopy{std::move(list)});
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

HiddenPlugins::HiddenPlugins()
    : lock_(oneAtATime()), before_(std::atomic_ref<char**>(environ).load()), with_(withoutPlugins(before_)) {
  std::atomic_ref<char**>(environ).store(with_.entries.data());
}

HiddenPlugins::~HiddenPlugins() {
  const std::atomic_ref<char**> current(environ);
  char** now = with_.entries.data();
  // A changed copy has what the application wants now, and becomes its environment.
  if (with_.changed() || !current.compare_exchange_strong(now, before_)) takeOut(current.load());
}

}  // namespace tutti
