#include "base/ranks/abort.h"

#include <algorithm>

#include "base/log.h"

namespace tutti {

namespace {
void writeMirror(std::uint32_t* word) {
  std::atomic_ref<std::uint32_t>(*word).store(1, std::memory_order_release);
}
}  // namespace

void Abort::raise(Status why, std::string text, std::string_view lastError) {
  std::vector<std::function<void(Status)>> listeners;
  {
    std::lock_guard lock(mutex_);
    if (why.ok() || raised()) return;
    restoreLastError(lastError);
    text_ = std::move(text);
    code_.store(why.code(), std::memory_order_release);
    for (std::uint32_t* word : mirrors_) writeMirror(word);
    listeners.swap(listeners_);
  }
  for (auto& listener : listeners) listener(why);
}

void Abort::correct(std::string text) {
  std::lock_guard lock(mutex_);
  if (!raised()) return;
  restoreLastError(text);
  text_ = std::move(text);
}

std::string Abort::text() const {
  std::lock_guard lock(mutex_);
  return text_;
}

void Abort::addMirror(std::uint32_t* word) {
  std::lock_guard lock(mutex_);
  mirrors_.push_back(word);
  if (raised()) writeMirror(word);
}

void Abort::removeMirror(std::uint32_t* word) {
  std::lock_guard lock(mutex_);
  std::erase(mirrors_, word);
}

void Abort::addListener(std::function<void(Status)> listener) {
  {
    std::lock_guard lock(mutex_);
    if (!raised()) {
      listeners_.push_back(std::move(listener));
      return;
    }
  }
  listener(status());
}

}  // namespace tutti
