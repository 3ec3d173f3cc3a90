#include "lifecycle/shared.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

namespace lifecycle {

namespace {

void sleepUs(int us) {
  std::this_thread::sleep_for(std::chrono::microseconds(us));
}

void printAll(const Shared& shared) {
  const long now = nowMs();
  for (int rank = 0; rank < shared.ranks; ++rank) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const Place& place = shared.places[static_cast<std::size_t>(rank)][static_cast<std::size_t>(lane)];
      const long since = place.sinceMs;
      if (since == 0) continue;
      std::printf("  rank %d thread %d, step %ld, for %ld ms: %s\n", rank, lane, place.step.load(), now - since,
                  place.doing.read().c_str());
    }
  }
}

}  // namespace

void Notice::write(std::string_view text) {
  const std::size_t length = std::min(text.size(), kWords * 8 - 1);
  for (std::size_t i = 0; i < kWords; ++i) {
    std::uint64_t word = 0;
    if (8 * i < length) std::memcpy(&word, text.data() + 8 * i, std::min<std::size_t>(8, length - 8 * i));
    words_[i].store(word, std::memory_order_relaxed);
    if (8 * i >= length) break;
  }
}

std::string Notice::read() const {
  std::string text;
  for (const auto& atom : words_) {
    const std::uint64_t word = atom.load(std::memory_order_relaxed);
    std::array<char, 9> piece{};
    std::memcpy(piece.data(), &word, 8);
    text += piece.data();
    if (std::strlen(piece.data()) < 8) break;
  }
  return text;
}

Shared& makeShared() {
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    std::exit(2);
  }
  return *new (memory) Shared;
}

long nowMs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

void note(Shared& shared, int rank, int lane, long step, std::string_view doing) {
  Place& place = shared.places[static_cast<std::size_t>(rank)][static_cast<std::size_t>(lane)];
  place.doing.write(doing);
  place.step = step;
  place.sinceMs = doing.empty() ? 0 : nowMs();
}

void fail(Shared& shared, int rank, long step, const std::string& why) {
  if (shared.ended.exchange(true)) {
    sleepUs(2'000'000);  // whoever was first has something to print
    ::_exit(1);
  }
  std::printf("FAILED: seed %llu, step %ld, rank %d: %s\n", static_cast<unsigned long long>(shared.seed), step, rank,
              why.c_str());
  printAll(shared);
  std::fflush(stdout);
  ::_exit(1);
}

void meet(Shared& shared, long number, int count) {
  std::atomic<int>& met = shared.met[static_cast<std::size_t>(number)];
  ++met;
  while (met < count) sleepUs(50);
}

void publish(Shared& shared, long deed, const ncclUniqueId& id) {
  const std::size_t place = static_cast<std::size_t>(deed) % shared.ids.size();
  shared.ids[place] = id;
  shared.idOf[place] = deed + 1;
}

ncclUniqueId await(Shared& shared, long deed) {
  const std::size_t place = static_cast<std::size_t>(deed) % shared.ids.size();
  while (shared.idOf[place] != deed + 1) sleepUs(50);
  return shared.ids[place];
}

void watch(Shared& shared, int first, int last) {
  std::thread([&shared, first, last] {
    for (;;) {
      sleepUs(100'000);
      const long now = nowMs();
      for (int rank = first; rank <= last; ++rank) {
        for (Place& place : shared.places[static_cast<std::size_t>(rank)]) {
          const long since = place.sinceMs;
          if (since != 0 && now - since > shared.patienceMs) fail(shared, rank, place.step, "it hangs");
        }
      }
    }
  }).detach();
}

}  // namespace lifecycle
