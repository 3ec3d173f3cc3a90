#include "plugin/plugin_calls.h"

#include <algorithm>
#include <set>

#include "base/never_destroyed.h"
#include "base/result_name.h"

namespace tutti::plugin {

ncclResult_t errorCode(ncclResult_t returned) {
  const int value = returned;
  // "In progress" is no answer of a plugin: what must be tried again is said by null pointers.
  const bool known = value > ncclSuccess && value < ncclNumResults && value != ncclInProgress;
  return known ? returned : ncclInternalError;
}

namespace {

std::string placeOf(const PluginIdentity& who) {
  return fmt::format("network {} ({} v{} of {})", who.name, who.kind, who.version, who.library);
}

struct Texts {
  std::mutex mutex;
  std::set<std::string> all;  // guarded by mutex
};

}  // namespace

const char* lastingText(const std::string& text) {
  static NeverDestroyed<Texts> texts;
  const std::lock_guard lock(texts.get().mutex);
  return texts.get().all.insert(text).first->c_str();
}

PluginCalls::PluginCalls(const PluginIdentity& who) : who_(who), place_(lastingText(placeOf(who))) {}

std::string PluginCalls::place(int device) const {
  std::string text = placeOf(who_);
  if (device != kNoDevice) text += fmt::format(", device {}", device);
  return text;
}

std::string PluginCalls::describe(ncclResult_t code, const char* call, int device) const {
  const std::string words = takePluginWarning();
  return fmt::format("{}: {} failed with {}{}", place(device), call, resultName(code),
                     words.empty() ? ", and the network said nothing" : fmt::format("; it said: {}", words));
}

Status PluginCalls::failed(ncclResult_t code, const char* call, int device) const {
  return fail(errorCode(code), "{}", describe(code, call, device));
}

Status PluginCalls::failedQuietly(ncclResult_t code, const char* call, int device) const {
  std::string said;
  Status status;
  {
    const ErrorsAsInfo quiet;
    status = failed(code, call, device);
    said = lastErrorText();
  }
  recallLastError(said);
  return status;
}

Status PluginCalls::refuse(ncclResult_t code, const char* call, int device, const std::string& why) const {
  return fail(code, "{}: {}: {}", place(device), call, why);
}

void PluginCalls::remember(const void* end, int device) {
  const std::lock_guard lock(mutex_);
  devices_[end] = device;
}

void PluginCalls::forget(const void* end) {
  const std::lock_guard lock(mutex_);
  devices_.erase(end);
}

int PluginCalls::deviceOf(const void* end) const {
  const std::lock_guard lock(mutex_);
  if (const auto found = devices_.find(end); found != devices_.end()) return found->second;
  if (end != nullptr || devices_.empty()) return kNoDevice;
  const int first = devices_.begin()->second;
  const bool only =
      std::all_of(devices_.begin(), devices_.end(), [&](const auto& entry) { return entry.second == first; });
  return only ? first : kNoDevice;
}

}  // namespace tutti::plugin
