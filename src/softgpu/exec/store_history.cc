#include "softgpu/exec/store_history.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "softgpu/exec/memory_words.h"

namespace tutti::softgpu {

StoreHistory& StoreHistory::ofProcess() {
  static StoreHistory& history = *new StoreHistory;  // engines run until the process is gone
  return history;
}

StoreHistory::Past& StoreHistory::next() {
  const std::uint64_t time = now_.load(std::memory_order_relaxed) + 1;
  Past& past = latest_[time % kMost];
  const auto last = lastOf_.find(past.line);
  if (last != lastOf_.end() && last->second == past.time) lastOf_.erase(last);
  past = {};
  past.time = time;
  return past;
}

std::uint64_t StoreHistory::tick() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t time = next().time;
  now_.store(time, std::memory_order_release);
  return time;
}

void StoreHistory::store(std::uintptr_t to, const unsigned char* from, std::size_t bytes, const Storer& storer) {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  Past& past = next();
  past.line = to / kLineBytes * kLineBytes;
  past.storer = storer;
  past.offset = static_cast<std::uint8_t>(to - past.line);
  past.bytes = static_cast<std::uint8_t>(bytes);
  past.before = std::exchange(lastOf_[past.line], past.time);
  now_.store(past.time, std::memory_order_release);  // before the value can be seen
  exchangeMemory(to, from, past.held, bytes);
}

void StoreHistory::load(unsigned char* to, std::uintptr_t from, std::size_t bytes, std::uint64_t time,
                        const Known& known) const {
  const std::lock_guard lock(mutex_);
  readMemory(to, from, bytes);
  for (std::uintptr_t line = from / kLineBytes * kLineBytes; line < from + bytes; line += kLineBytes) {
    const auto last = lastOf_.find(line);
    std::uint64_t at = last == lastOf_.end() ? 0 : last->second;
    while (at > time) {
      const Past& past = this->at(at);
      if (past.time != at || known.mustSee(past.storer, at, time)) break;
      const std::uintptr_t begin = std::max(line + past.offset, from);
      const std::uintptr_t end = std::min(line + past.offset + past.bytes, from + bytes);
      if (begin < end) std::memcpy(to + (begin - from), past.held + (begin - line - past.offset), end - begin);
      at = past.before;
    }
  }
}

}  // namespace tutti::softgpu
