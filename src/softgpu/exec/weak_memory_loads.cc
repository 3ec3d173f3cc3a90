// What loads return in weak memory, and what barriers pass on to them.
#include <algorithm>
#include <cstring>

#include "softgpu/exec/memory_words.h"
#include "softgpu/exec/weak_memory.h"

namespace tutti::softgpu {
namespace {

/// Lines that are remembered as seen.
constexpr std::size_t kMostSeen = 4096;

}  // namespace

void WeakMemory::sawAt(std::uint64_t time, std::uintptr_t from, std::size_t bytes) {
  if (loadsReach_ == 0) return;
  if (seenAt_.size() > kMostSeen) {
    seenAt_.clear();
    seenLeast_ = history_.now();
  }
  for (std::uintptr_t line = from / kLineBytes * kLineBytes; line < from + bytes; line += kLineBytes) {
    std::uint64_t& seen = seenAt_[line];
    seen = std::max(seen, time);
  }
}

std::uint64_t WeakMemory::timeOfLoad(std::uintptr_t from, std::size_t bytes) {
  if (loadsReach_ == 0 || loads_.below(earlyEvery_) != 0) return kNow;
  const std::uint64_t now = history_.now();
  std::uint64_t earliest = std::max(threads_[running.thread].acquired, seenLeast_);
  if (now > loadsReach_) earliest = std::max(earliest, now - loadsReach_);
  for (std::uintptr_t line = from / kLineBytes * kLineBytes; line < from + bytes; line += kLineBytes) {
    const auto seen = seenAt_.find(line);
    if (seen != seenAt_.end()) earliest = std::max(earliest, seen->second);
  }
  return earliest >= now ? kNow : now - loads_.below(now - earliest + 1);
}

void WeakMemory::readNow(unsigned char* to, std::uintptr_t from, std::size_t bytes) {
  readMemory(to, from, bytes);
  if (ownStack(from)) return;
  const std::uint64_t now = history_.now();
  sawAt(now, from, bytes);
  addWaiting(to, from, bytes, now);
}

void WeakMemory::readEarly(unsigned char* to, std::uintptr_t from, std::size_t bytes) {
  const std::uint64_t time = ownStack(from) ? kNow : timeOfLoad(from, bytes);
  if (time == kNow) return readNow(to, from, bytes);
  history_.load(to, from, bytes, time, *this);
  sawAt(time, from, bytes);
  addWaiting(to, from, bytes, time);
}

void WeakMemory::addWaiting(unsigned char* to, std::uintptr_t from, std::size_t bytes, std::uint64_t time) const {
  if (lines_.empty()) return;
  for (std::uintptr_t line = from / kLineBytes * kLineBytes; line < from + bytes; line += kLineBytes) {
    const auto found = lineAt_.find(line);
    if (found == lineAt_.end()) continue;
    for (std::uint32_t i = lines_[found->second].first; i != kNone; i = stores_[i].next) {
      const Store& store = stores_[i];
      if (!sees(store, time)) continue;
      const std::uintptr_t begin = std::max(line + store.offset, from);
      const std::uintptr_t end = std::min(line + store.offset + store.bytes, from + bytes);
      if (begin < end) std::memcpy(to + (begin - from), store.data + (begin - line - store.offset), end - begin);
    }
  }
}

bool WeakMemory::anyToKnow() const {
  if (!lines_.empty()) return true;
  return lastStore_ != 0 && history_.now() - lastStore_ < StoreHistory::kMost;
}

void WeakMemory::synchronise(const std::vector<std::uint32_t>& threads) {
  passAcquired(threads);
  if (!anyToKnow()) return;
  auto joined = std::make_shared<std::vector<std::uint32_t>>(*threads_[threads.front()].known);
  const std::vector<std::uint32_t>* last = threads_[threads.front()].known.get();
  for (const std::uint32_t thread : threads) {
    const std::vector<std::uint32_t>& known = *threads_[thread].known;
    if (&known == last) continue;
    last = &known;
    for (std::size_t i = 0; i < known.size(); ++i) (*joined)[i] = std::max((*joined)[i], known[i]);
  }
  for (const std::uint32_t thread : threads) {
    (*joined)[thread] = std::max((*joined)[thread], threads_[thread].clock);
  }
  for (const std::uint32_t thread : threads) {
    ++threads_[thread].clock;
    threads_[thread].known = joined;
  }
}

void WeakMemory::passAcquired(const std::vector<std::uint32_t>& threads) {
  std::uint64_t acquired = 0, acquiredInBlock = 0;
  for (const std::uint32_t thread : threads) {
    acquired = std::max(acquired, threads_[thread].acquired);
    acquiredInBlock = std::max(acquiredInBlock, threads_[thread].acquiredInBlock);
  }
  for (const std::uint32_t thread : threads) {
    threads_[thread].acquired = acquired;
    threads_[thread].acquiredInBlock = acquiredInBlock;
  }
}

}  // namespace tutti::softgpu
