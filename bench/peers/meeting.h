// Where the ranks that launch.py started meet: a page of shared memory. Waiting ranks spin, so that all leave a barrier
// at the same moment, whatever the library between them does.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace peer {

/// A variable that the launcher sets; ends the program with 2 if it is not there.
inline const char* fromLauncher(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) {
    std::fprintf(stderr, "%s is not set: start this program with bench/peers/launch.py\n", name);
    std::exit(2);
  }
  return value;
}

class Meeting {
 public:
  /// `extra`: bytes for the program's own use, which all ranks map; they take memory once touched or reserved.
  /// `yields`: a rank that waits gives up its core now and then, as it does anyhow if there are more ranks than cores.
  Meeting(std::size_t extra, bool yields) {
    rank_ = std::atoi(fromLauncher("RANK"));
    size_ = std::atoi(fromLauncher("WORLD_SIZE"));
    yields_ = yields || size_ > static_cast<int>(std::thread::hardware_concurrency());
    const std::string name = std::string("/tutti-peers.") + fromLauncher("PEER_JOB");
    file_ = size_ <= kMaxRanks ? shm_open(name.c_str(), O_RDWR | O_CREAT, 0600) : -1;
    void* memory = MAP_FAILED;
    if (file_ >= 0 && ftruncate(file_, static_cast<off_t>(kPage + extra)) == 0) {
      memory = mmap(nullptr, kPage + extra, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    }
    if (memory == MAP_FAILED) die("/dev/shm" + name, size_ > kMaxRanks ? E2BIG : errno);
    control_ = static_cast<Control*>(memory);
    barrier();
    if (rank_ == 0) shm_unlink(name.c_str());
  }
  int rank() const { return rank_; }
  int size() const { return size_; }
  char* extra() const { return reinterpret_cast<char*>(control_) + kPage; }
  /// Takes memory for bytes of extra(). Ends the program if there is too little: a store would kill it without a word,
  /// and containers often have a small /dev/shm.
  void reserve(std::size_t offset, std::size_t bytes) const {
    const int error = posix_fallocate(file_, static_cast<off_t>(kPage + offset), static_cast<off_t>(bytes));
    if (error != 0) die(std::to_string(bytes) + " more bytes in /dev/shm", error);
  }
  void barrier() {
    const std::uint64_t epoch = ++epoch_;
    control_->arrived[rank_].value.store(epoch, std::memory_order_release);
    for (int r = 0; r < size_; ++r) {
      for (int spins = 0; control_->arrived[r].value.load(std::memory_order_acquire) < epoch; ++spins) {
        if (yields_ && spins > 64) sched_yield();
      }
    }
  }
  /// The largest value of all ranks.
  double largest(double value) {
    control_->values[rank_] = value;
    barrier();
    for (int r = 0; r < size_; ++r) value = std::max(value, control_->values[r]);
    barrier();
    return value;
  }

 private:
  static constexpr int kMaxRanks = 16;
  static constexpr std::size_t kPage = 4096;
  struct alignas(128) Flag {
    std::atomic<std::uint64_t> value;
  };
  struct Control {
    Flag arrived[kMaxRanks];
    alignas(128) double values[kMaxRanks];
  };
  static_assert(sizeof(Control) <= kPage);

  [[noreturn]] void die(const std::string& what, int error) const {
    std::fprintf(stderr, "rank %d of %d: %s: %s\n", rank_, size_, what.c_str(), std::strerror(error));
    std::exit(1);
  }

  bool yields_ = true;
  int rank_ = 0;
  int size_ = 1;
  int file_ = -1;
  std::uint64_t epoch_ = 0;
  Control* control_ = nullptr;
};

}  // namespace peer
