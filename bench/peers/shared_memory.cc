// How fast the machine can do it at all: user buffers lie in memory that all ranks map, so every rank reads its peers'
// inputs where they are. No library can offer that for buffers of any origin. --algo nt: stores past the cache.
// Ranks are started with RANK, WORLD_SIZE and PEERBENCH_JOB (a name of this run) set.
#include <fcntl.h>
#include <immintrin.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "peer.h"

namespace {

constexpr std::size_t kArena = std::size_t{1} << 30;  // of each rank; only what is touched takes memory
constexpr std::size_t kLane = 16;                     // floats of one AVX-512 store
constexpr int kMaxRanks = 16;

struct alignas(128) Flag {
  std::atomic<std::uint64_t> value;
};

struct Control {
  Flag arrived[kMaxRanks];
  alignas(128) double values[kMaxRanks];
};

class SharedMemory : public peer::Peer {
 public:
  explicit SharedMemory(bool streaming) : streaming_(streaming) {
    rank_ = std::atoi(std::getenv("RANK"));
    size_ = std::atoi(std::getenv("WORLD_SIZE"));
    yields_ = size_ > static_cast<int>(std::thread::hardware_concurrency());
    const std::string name = std::string("/tutti-reference.") + std::getenv("PEERBENCH_JOB");
    const std::size_t total = sizeof(Control) + 4096 + kArena * static_cast<std::size_t>(size_);
    const int file = shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
    void* memory = MAP_FAILED;
    if (file >= 0 && ftruncate(file, static_cast<off_t>(total)) == 0) {
      memory = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    if (memory == MAP_FAILED) {
      std::perror(name.c_str());
      _exit(1);
    }
    control_ = static_cast<Control*>(memory);
    arenas_ = static_cast<char*>(memory) + (sizeof(Control) + 4095) / 4096 * 4096;
    barrier();
    if (rank_ == 0) shm_unlink(name.c_str());
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override {
    const std::uint64_t epoch = ++epoch_;
    control_->arrived[rank_].value.store(epoch, std::memory_order_release);
    for (int r = 0; r < size_; ++r) {
      for (int spins = 0; control_->arrived[r].value.load(std::memory_order_acquire) < epoch; ++spins) {
        if (yields_ && spins > 64) sched_yield();
      }
    }
  }
  double largest(double value) override {
    control_->values[rank_] = value;
    barrier();
    for (int r = 0; r < size_; ++r) value = std::max(value, control_->values[r]);
    barrier();
    return value;
  }
  float* allocate(std::size_t bytes) override {
    float* block = at(rank_, used_);
    used_ += (bytes + 4095) / 4096 * 4096;
    return block;
  }
  void forgetBuffers() override { used_ = 0; }
  std::function<void()> prepare(const peer::Call& c) override {
    if (c.op == peer::Op::Broadcast && rank_ == 0) std::copy(c.in, c.in + c.count, c.out);  // in place, as MPI's
    return [this, c] {
      barrier();
      run(c);
      barrier();
    };
  }

 private:
  float* at(int rank, std::size_t offset) const {
    return reinterpret_cast<float*>(arenas_ + kArena * static_cast<std::size_t>(rank) + offset);
  }
  /// The buffer that lies in `rank`'s arena where this one lies in ours: all ranks allocate alike.
  float* theirs(int rank, const float* own) const {
    return at(rank, static_cast<std::size_t>(reinterpret_cast<const char*>(own) - reinterpret_cast<char*>(at(rank_, 0))));
  }

  void copy(float* to, const float* from, std::size_t n) const {
    if (!streaming_ || reinterpret_cast<std::uintptr_t>(to) % 64 != 0) {
      std::memcpy(to, from, n * sizeof(float));
      return;
    }
    std::size_t i = 0;
    for (; i + kLane <= n; i += kLane) _mm512_stream_ps(to + i, _mm512_loadu_ps(from + i));
    for (; i < n; ++i) to[i] = from[i];
    _mm_sfence();
  }

  /// Sums elements [begin, end) of all inputs into every buffer of `outs`, whose element 0 belongs to `begin`.
  void reduce(const float* in, std::size_t begin, std::size_t end, const std::vector<float*>& outs) const {
    std::size_t i = begin;
    const bool aligned = reinterpret_cast<std::uintptr_t>(outs[0]) % 64 == 0;
    for (; i + kLane <= end; i += kLane) {
      __m512 sum = _mm512_loadu_ps(theirs(0, in) + i);
      for (int r = 1; r < size_; ++r) sum = _mm512_add_ps(sum, _mm512_loadu_ps(theirs(r, in) + i));
      for (float* out : outs) {
        if (streaming_ && aligned) _mm512_stream_ps(out + (i - begin), sum);
        else _mm512_storeu_ps(out + (i - begin), sum);
      }
    }
    for (; i < end; ++i) {
      float sum = 0;
      for (int r = 0; r < size_; ++r) sum += theirs(r, in)[i];
      for (float* out : outs) out[i - begin] = sum;
    }
    _mm_sfence();
  }

  void run(const peer::Call& c) const {
    const auto me = static_cast<std::size_t>(rank_);
    const auto n = static_cast<std::size_t>(size_);
    switch (c.op) {
      case peer::Op::AllGather:
        for (std::size_t r = 0; r < n; ++r) copy(c.out + r * c.count, theirs(static_cast<int>(r), c.in), c.count);
        return;
      case peer::Op::AlltoAll:
        for (std::size_t r = 0; r < n; ++r) {
          copy(c.out + r * c.count, theirs(static_cast<int>(r), c.in) + me * c.count, c.count);
        }
        return;
      case peer::Op::Broadcast:
        if (rank_ != 0) copy(c.out, theirs(0, c.in), c.count);
        return;
      case peer::Op::ReduceScatter: return reduce(c.in, me * c.count, (me + 1) * c.count, {c.out});
      case peer::Op::AllReduce: {
        const std::size_t share = (c.count / n + kLane - 1) / kLane * kLane;
        const std::size_t begin = std::min(c.count, share * me);
        const std::size_t end = rank_ == size_ - 1 ? c.count : std::min(c.count, begin + share);
        std::vector<float*> outs;
        for (int r = 0; r < size_; ++r) outs.push_back(theirs(r, c.out) + begin);
        return reduce(c.in, begin, end, outs);
      }
    }
  }

  bool streaming_;
  int rank_ = 0;
  int size_ = 1;
  bool yields_ = true;
  std::size_t used_ = 0;
  std::uint64_t epoch_ = 0;
  Control* control_ = nullptr;
  char* arenas_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  bool streaming = false;
  for (int i = 1; i + 1 < argc; ++i) streaming |= std::strcmp(argv[i], "--algo") == 0 && std::strcmp(argv[i + 1], "nt") == 0;
  SharedMemory machine(streaming);
  return peer::runPeer(machine, argc, argv);
}
