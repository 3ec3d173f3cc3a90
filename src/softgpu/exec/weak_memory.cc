#include "softgpu/exec/weak_memory.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "softgpu/exec/memory_words.h"
#include "softgpu/ptx_library.h"

namespace tutti::softgpu {
namespace {

constexpr std::size_t kMostStores = std::size_t{1} << 15;
constexpr std::size_t kFlagLineBytes = 128;

}  // namespace

constinit thread_local WeakMemory::Running WeakMemory::running;

WeakMemory::WeakMemory(std::uint64_t seed, std::uint32_t threads) : random_(seed), loads_(~seed), threads_(threads) {
  // Memories of all temperaments: from one that shows every store soon to one that hides them for long.
  constexpr unsigned kPasses[] = {1, 4, 16, 64};
  constexpr unsigned kStores[] = {8, 64, 1024, 1u << 20};
  driftEvery_ = kPasses[random_.below(4)];
  storeDriftEvery_ = kStores[random_.below(4)];
  constexpr std::uint64_t kReaches[] = {0, 16, 256, StoreHistory::kMost};
  constexpr unsigned kEarly[] = {1, 2, 8, 64};
  loadsReach_ = kReaches[loads_.below(4)];
  earlyEvery_ = kEarly[loads_.below(4)];
  const auto nothing = std::make_shared<std::vector<std::uint32_t>>(threads, 0);
  for (ThreadState& thread : threads_) {
    thread.known = nothing;
    thread.acquired = history_.now();
  }
}

const simt::HostMemory* WeakMemory::operations() {
  static const PtxMemory kOperations = {.common = {.load = load,
                                                   .store = store,
                                                   .copy = copy,
                                                   .finishStreaming = finishStreaming,
                                                   .storeLinePart = storeLinePart,
                                                   .fence = fence,
                                                   .storeRelease = storeRelease,
                                                   .loadEarly = loadEarly,
                                                   .acquire = acquire,
                                                   .release = release},
                                        .settle = settle,
                                        .copyAside = copyAside};
  return &kOperations.common;
}

void WeakMemory::enter(std::uint32_t thread, const char* stack, std::size_t stackBytes) {
  running = {this, thread, stack, stackBytes};
}

// --- what device code calls

void WeakMemory::load(void* to, const void* from, std::size_t bytes) {
  running.memory->readNow(static_cast<unsigned char*>(to), reinterpret_cast<std::uintptr_t>(from), bytes);
}

void WeakMemory::loadEarly(void* to, const void* from, std::size_t bytes) {
  running.memory->readEarly(static_cast<unsigned char*>(to), reinterpret_cast<std::uintptr_t>(from), bytes);
}

/// Whatever was released before what the running thread has seen is visible by now, to the scope of the release. Who
/// acquires from a thread of the block gets what that one has acquired, perhaps from elsewhere; which one it was nobody
/// knows.
void WeakMemory::acquire(simt::FenceScope scope) {
  WeakMemory& memory = *running.memory;
  ThreadState& thread = memory.threads_[running.thread];
  thread.acquiredInBlock = memory.history_.now();
  if (scope != simt::FenceScope::Block) memory.newestAcquired_ = thread.acquiredInBlock;
  thread.acquired = std::max(thread.acquired, memory.newestAcquired_);
}

void WeakMemory::release(simt::FenceScope scope) {
  running.memory->reach(scope);
}

void WeakMemory::store(void* to, const void* from, std::size_t bytes) {
  running.memory->write(reinterpret_cast<std::uintptr_t>(to), static_cast<const unsigned char*>(from), bytes,
                        Kind::Plain);
}

void WeakMemory::copy(void* to, const void* from, std::size_t bytes, bool streaming) {
  running.memory->copyAs(streaming ? Kind::Streamed : Kind::Plain, to, from, bytes);
}

void WeakMemory::copyAside(void* to, const void* from, std::size_t bytes) {
  running.memory->copyAs(Kind::Aside, to, from, bytes);
}

void WeakMemory::copyAs(Kind kind, void* to, const void* from, std::size_t bytes) {
  unsigned char piece[512];
  for (std::size_t done = 0; done < bytes; done += sizeof(piece)) {
    const std::size_t n = std::min(sizeof(piece), bytes - done);
    readEarly(piece, reinterpret_cast<std::uintptr_t>(from) + done, n);
    write(reinterpret_cast<std::uintptr_t>(to) + done, piece, n, kind);
  }
}

/// The running thread's streamed stores become like any others.
void WeakMemory::finishStreaming() {
  WeakMemory& memory = *running.memory;
  for (const Line& line : memory.lines_) {
    for (std::uint32_t i = line.first; i != kNone; i = memory.stores_[i].next) {
      if (memory.stores_[i].storer.thread == running.thread) memory.stores_[i].streamed = false;
    }
  }
}

void WeakMemory::storeLinePart(void* to, const void* from) {
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  const bool endsLine = address % kFlagLineBytes == kFlagLineBytes - kLineBytes;
  running.memory->write(address, static_cast<const unsigned char*>(from), kLineBytes,
                        endsLine ? Kind::EndsLine : Kind::Plain);
}

void WeakMemory::fence(simt::FenceScope scope) {
  if (scope != simt::FenceScope::Block) finishStreaming();
  running.memory->reach(scope);
  acquire(scope);
}

void WeakMemory::storeRelease(void* to, const void* from, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  running.memory->reach(simt::FenceScope::Sys);
  running.memory->drainBefore(address / kLineBytes * kLineBytes, ~std::uint64_t{0});
  running.memory->show(address, static_cast<const unsigned char*>(from), bytes, running.memory->runningThread());
}

void WeakMemory::settle(const void* address, std::size_t bytes) {
  WeakMemory& memory = *running.memory;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  for (std::uintptr_t line = begin / kLineBytes * kLineBytes; line < begin + bytes; line += kLineBytes) {
    const auto found = memory.lineAt_.find(line);
    if (found != memory.lineAt_.end()) memory.drainKnown(found->second);
  }
  memory.sawAt(memory.history_.now(), begin, bytes);
}

// --- loads and stores

bool WeakMemory::ownStack(std::uintptr_t address) const {
  return address - reinterpret_cast<std::uintptr_t>(running.stack) < running.stackBytes;
}

bool WeakMemory::mustSee(const Storer& storer, std::uint64_t visibleAt, std::uint64_t time) const {
  if (storer.block != block_) return false;
  const ThreadState& thread = threads_[running.thread];
  if (storer.thread == running.thread || (*thread.known)[storer.thread] >= storer.clock) return true;
  return std::min(storer.shown, visibleAt) <= std::max(time, thread.acquiredInBlock);
}

Storer WeakMemory::runningThread() const {
  return {block_, running.thread, threads_[running.thread].clock};
}

void WeakMemory::write(std::uintptr_t to, const unsigned char* from, std::size_t bytes, Kind kind) {
  if (ownStack(to)) {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return;
  }
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t n = std::min(kLineBytes - (to + done) % kLineBytes, bytes - done);
    append(to + done, from + done, n, kind);
    done += n;
  }
  if (random_.below(storeDriftEvery_) == 0) drainSome(1 + random_.below(16));
}

void WeakMemory::append(std::uintptr_t to, const unsigned char* from, std::size_t bytes, Kind kind) {
  if (pending_ >= kMostStores) drainSome(kMostStores / 2);
  std::uint32_t index = freeStore_;
  if (index == kNone) {
    index = static_cast<std::uint32_t>(stores_.size());
    stores_.emplace_back();
  } else {
    freeStore_ = stores_[index].next;
  }
  Store& store = stores_[index];
  const std::uintptr_t address = to / kLineBytes * kLineBytes;
  store.sequence = sequence_++;
  store.storer = runningThread();
  store.next = kNone;
  store.offset = static_cast<std::uint8_t>(to - address);
  store.bytes = static_cast<std::uint8_t>(bytes);
  store.streamed = kind == Kind::Streamed || kind == Kind::Aside;
  store.finishes = kind == Kind::Aside;
  store.endsLine = kind == Kind::EndsLine;
  std::memcpy(store.data, from, bytes);
  ++pending_;
  const auto [at, isNew] = lineAt_.try_emplace(address, lines_.size());
  if (isNew) {
    lines_.push_back({address, index, index});
  } else {
    Line& line = lines_[at->second];
    stores_[line.last].next = index;
    line.last = index;
  }
}

// --- what becomes visible when

void WeakMemory::show(std::uintptr_t to, const unsigned char* from, std::size_t bytes, const Storer& storer) {
  history_.store(to, from, bytes, storer);
  lastStore_ = history_.now();
}

void WeakMemory::drainFirst(std::size_t at) {
  const std::uint32_t index = lines_[at].first;
  const std::uintptr_t address = lines_[at].address;
  if (stores_[index].endsLine) {
    const std::uintptr_t begin = address / kFlagLineBytes * kFlagLineBytes;
    for (std::uintptr_t part = begin; part < address; part += kLineBytes) drainBefore(part, stores_[index].sequence);
    at = lineAt_.find(address)->second;  // lines have moved
  }
  Store& store = stores_[index];
  show(address + store.offset, store.data, store.bytes, store.storer);
  lines_[at].first = store.next;
  if (store.next == kNone) {
    lineAt_.erase(address);
    if (at + 1 != lines_.size()) {
      lines_[at] = lines_.back();
      lineAt_[lines_[at].address] = at;
    }
    lines_.pop_back();
  }
  store.next = freeStore_;
  freeStore_ = index;
  --pending_;
}

/// The stores to one line that are older than `sequence`.
void WeakMemory::drainBefore(std::uintptr_t address, std::uint64_t sequence) {
  for (auto at = lineAt_.find(address); at != lineAt_.end() && stores_[lines_[at->second].first].sequence < sequence;
       at = lineAt_.find(address)) {
    drainFirst(at->second);
  }
}

/// What the running thread knows of a line, and what is older: stores to one place stay in order.
void WeakMemory::drainKnown(std::size_t at) {
  const std::uint64_t now = history_.now();
  std::uint64_t newest = 0;
  bool any = false;
  for (std::uint32_t i = lines_[at].first; i != kNone; i = stores_[i].next) {
    if (!sees(stores_[i], now) || stores_[i].streamed) continue;
    newest = stores_[i].sequence;
    any = true;
  }
  if (any) drainBefore(lines_[at].address, newest + 1);
}

void WeakMemory::drainSome(std::size_t most) {
  for (std::size_t i = 0; i < most && !lines_.empty(); ++i) drainFirst(random_.below(lines_.size()));
}

void WeakMemory::reach(simt::FenceScope scope) {
  if (scope == simt::FenceScope::Block) {
    if (lines_.empty()) return;
    const std::uint64_t now = history_.tick();  // who has not acquired it need not see it
    for (const Line& line : lines_) {
      for (std::uint32_t i = line.first; i != kNone; i = stores_[i].next) {
        Store& store = stores_[i];
        if (sees(store, now) && !store.streamed) store.storer.shown = std::min(store.storer.shown, now);
      }
    }
    return;
  }
  // Backwards: a line that goes is replaced by the last one, which has had its turn.
  for (std::size_t at = lines_.size(); at-- > 0;) {
    if (at < lines_.size()) drainKnown(at);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void WeakMemory::drift() {
  if (lines_.empty() || random_.below(driftEvery_) != 0) return;
  switch (random_.below(4)) {
    case 0:
      return drainSome(1);
    case 1:
      return drainSome(1 + random_.below(32));
    case 2:
      return drainSome(pending_ / 2);
    case 3:
      return drainSome(pending_ - random_.below(std::min<std::size_t>(pending_, 4)));
  }
}

void WeakMemory::flush() {
  for (const Line& line : lines_) {
    for (std::uint32_t i = line.first; i != kNone; i = stores_[i].next) {
      if (stores_[i].streamed && !stores_[i].finishes) stores_[i].bytes = 0;
    }
  }
  while (!lines_.empty()) drainFirst(lines_.size() - 1);
}

}  // namespace tutti::softgpu
