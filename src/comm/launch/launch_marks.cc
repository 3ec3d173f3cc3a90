#include "comm/launch/launch_marks.h"

#include <algorithm>
#include <utility>

#include "gpu/context.h"

namespace tutti::comm {

namespace {

std::atomic<int>& marksOn(int ordinal) {
  // More devices share places, which makes a communicator believe that it is not alone: reports wait longer in vain.
  static std::array<std::atomic<int>, 64> count{};
  return count[static_cast<std::size_t>(ordinal) % count.size()];
}

/// The place of a launch among those of the process.
std::uint64_t nextOrder() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::uint64_t read(std::uint64_t& word) {
  return std::atomic_ref(word).load(std::memory_order_acquire);
}

}  // namespace

Result<std::unique_ptr<LaunchMarks>> LaunchMarks::create(const gpu::Device& device) {
  ASSIGN(gpu::PinnedBuffer memory,
         gpu::PinnedBuffer::create(device, sizeof(device::KernelMarks), "words that say how far kernels have come"));
  return std::unique_ptr<LaunchMarks>(new LaunchMarks(device, std::move(memory)));
}

LaunchMarks::LaunchMarks(const gpu::Device& device, gpu::PinnedBuffer memory)
    : neighbours_(&marksOn(device.ordinal())), memory_(std::move(memory)) {
  neighbours_->fetch_add(1);
}

LaunchMarks::~LaunchMarks() {
  neighbours_->fetch_sub(1);
}

bool LaunchMarks::severalHere() const {
  return neighbours_->load(std::memory_order_relaxed) > 1;
}

bool LaunchMarks::ended(const Mark& mark) const {
  std::uint64_t* const words = written()->ended;
  return std::all_of(words + mark.firstChannel, words + mark.firstChannel + mark.channels,
                     [&](std::uint64_t& word) { return read(word) >= mark.last; });
}

bool LaunchMarks::begun(const Mark& mark) const {
  return read(written()->begun) >= mark.first;
}

void LaunchMarks::forgetEnded() {
  for (; oldest_ != next_ && ended(marks_[oldest_ % kMost]); ++oldest_) endedUpTo_ = marks_[oldest_ % kMost].last;
}

void LaunchMarks::add(CUstream stream, const LaunchedCall& call, std::span<const PreparedLaunch> launches) {
  if (launches.empty()) return;
  const std::lock_guard lock(mutex_);
  if (given_) return;
  Mark mark{.first = latest_.last + 1, .call = call, .order = nextOrder(), .stream = stream};
  mark.last = mark.first;
  for (const PreparedLaunch& launch : launches) {
    if (launch.args == nullptr) continue;
    launch.args->marks = reinterpret_cast<device::KernelMarks*>(memory_.onDevice());
    launch.args->number = mark.last++;
    mark.firstChannel = launch.args->firstChannel;
    mark.channels = launch.grid;
  }
  --mark.last;
  latest_ = mark;
  if (next_ - oldest_ == kMost) forgetEnded();
  if (next_ - oldest_ < kMost) marks_[next_++ % kMost] = mark;
}

void LaunchMarks::giveUp() {
  const std::lock_guard lock(mutex_);
  given_ = true;
}

LaunchMarks::Front LaunchMarks::front() {
  using State = Front::State;
  const std::lock_guard lock(mutex_);
  if (given_) return {};
  forgetEnded();
  if (oldest_ == next_) return {.state = ended(latest_) ? State::Ended : State::Unknown};
  const Mark& mark = marks_[oldest_ % kMost];
  // Only if all before it have ended something else is in front of it.
  const bool known = mark.first == endedUpTo_ + 1 && !captured_.load(std::memory_order_relaxed);
  const State state = begun(mark) ? State::Begun : known ? State::Queued : State::Unknown;
  if (state == State::Unknown) return {};
  return {state, mark.call, mark.order, mark.stream};
}

}  // namespace tutti::comm
