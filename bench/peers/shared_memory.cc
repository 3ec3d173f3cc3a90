// How fast the machine can do it at all: user buffers lie in memory that all ranks map, so every rank reads its peers'
// inputs where they are. No library can offer that for buffers of any origin. --algo nt: stores past the cache.
// Ranks are started by launch.py.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "meeting.h"
#include "peer.h"

namespace {

constexpr std::size_t kArena = std::size_t{1} << 30;  // address space of each rank
constexpr std::size_t kLane = 16;                     // floats of one cache line
constexpr std::size_t kMaxRanks = 16;

using Lane = float __attribute__((vector_size(kLane * sizeof(float))));

/// Floats at any address as a lane.
using LooseLane = float __attribute__((vector_size(kLane * sizeof(float)), aligned(sizeof(float)), may_alias));
const LooseLane& load(const float* from) {
  return *reinterpret_cast<const LooseLane*>(from);
}

/// `to` lies on a cache line. Elsewhere than on x86 an ordinary store.
void storePastCache(float* to, const Lane& lane) {
#if defined(__AVX512F__)
  _mm512_stream_ps(to, reinterpret_cast<const __m512&>(lane));
#elif defined(__x86_64__)
  for (std::size_t i = 0; i < kLane; i += 4) {
    _mm_stream_ps(to + i, _mm_setr_ps(lane[i], lane[i + 1], lane[i + 2], lane[i + 3]));
  }
#else
  std::memcpy(to, &lane, sizeof lane);
#endif
}

/// Stores past the cache become visible in order only after this.
void orderStores() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

class SharedMemory : public peer::Peer {
 public:
  explicit SharedMemory(bool streaming)
      : streaming_(streaming), meeting_(kArena * kMaxRanks, false), rank_(meeting_.rank()), size_(meeting_.size()) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override { meeting_.barrier(); }
  double largest(double value) override { return meeting_.largest(value); }
  float* allocate(std::size_t bytes) override {
    const std::size_t offset = used_;
    used_ += (bytes + 4095) / 4096 * 4096;
    meeting_.reserve(kArena * static_cast<std::size_t>(rank_) + offset, used_ - offset);
    return at(rank_, offset);
  }
  void forgetBuffers() override { used_ = 0; }
  std::function<void()> prepare(peer::Call& c) override {
    if (c.op == peer::Op::Broadcast && rank_ == 0) std::copy(c.in, c.in + c.count, c.out);  // in place, as MPI's
    std::vector<float*> outs{c.out};
    if (c.op == peer::Op::AllReduce) {
      outs.clear();
      for (int r = 0; r < size_; ++r) outs.push_back(theirs(r, c.out) + shareStart(c, rank_));
    }
    return [this, c, outs] {
      barrier();
      run(c, outs);
      barrier();
    };
  }

 private:
  float* at(int rank, std::size_t offset) const {
    return reinterpret_cast<float*>(meeting_.extra() + kArena * static_cast<std::size_t>(rank) + offset);
  }
  /// The buffer that lies in `rank`'s arena where this one lies in ours: all ranks allocate alike.
  float* theirs(int rank, const float* own) const {
    return at(rank, static_cast<std::size_t>(own - at(rank_, 0)) * sizeof(float));
  }

  /// Of AllReduce: the first element that `rank` sums up, whole lanes but at the end.
  std::size_t shareStart(const peer::Call& c, int rank) const {
    const auto n = static_cast<std::size_t>(size_);
    const std::size_t share = ((c.count + n - 1) / n + kLane - 1) / kLane * kLane;
    return std::min(c.count, share * static_cast<std::size_t>(rank));
  }

  void copy(float* to, const float* from, std::size_t n) const {
    if (!streaming_ || reinterpret_cast<std::uintptr_t>(to) % 64 != 0) {
      std::memcpy(to, from, n * sizeof(float));
      return;
    }
    std::size_t i = 0;
    for (; i + kLane <= n; i += kLane) storePastCache(to + i, load(from + i));
    for (; i < n; ++i) to[i] = from[i];
    orderStores();
  }

  /// Sums elements [begin, end) of all inputs into every buffer of `outs`, whose element 0 belongs to `begin`.
  void reduce(const float* in, std::size_t begin, std::size_t end, const std::vector<float*>& outs) const {
    std::size_t i = begin;
    const bool aligned = reinterpret_cast<std::uintptr_t>(outs[0]) % 64 == 0;
    for (; i + kLane <= end; i += kLane) {
      Lane sum = load(theirs(0, in) + i);
      for (int r = 1; r < size_; ++r) sum += load(theirs(r, in) + i);
      for (float* out : outs) {
        if (streaming_ && aligned)
          storePastCache(out + (i - begin), sum);
        else
          std::memcpy(out + (i - begin), &sum, sizeof sum);
      }
    }
    for (; i < end; ++i) {
      float sum = 0;
      for (int r = 0; r < size_; ++r) sum += theirs(r, in)[i];
      for (float* out : outs) out[i - begin] = sum;
    }
    orderStores();
  }

  /// Every byte of the inputs is read once and every byte of the outputs written once, for all ranks together: what a
  /// rank sums up it stores in everybody's output. (Storing it once, for the others to copy, was slower at all sizes.)
  void run(const peer::Call& c, const std::vector<float*>& outs) const {
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
      case peer::Op::SendRecv:
        return copy(c.out, theirs((rank_ + size_ - 1) % size_, c.in), c.count);
      case peer::Op::ReduceScatter:
        return reduce(c.in, me * c.count, (me + 1) * c.count, outs);
      case peer::Op::AllReduce:
        return reduce(c.in, shareStart(c, rank_), shareStart(c, rank_ + 1), outs);
    }
  }

  bool streaming_;
  peer::Meeting meeting_;
  int rank_;
  int size_;
  std::size_t used_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const peer::Options options = peer::parse(argc, argv, {"direct", "nt"});
  SharedMemory machine(options.algorithm == "nt");
  return peer::runPeer(machine, options);
}
