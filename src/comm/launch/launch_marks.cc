#include "comm/launch/launch_marks.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace tutti::comm {

namespace {

std::atomic<int>& marksOn(int ordinal) {
  // More devices share places, which makes a communicator believe that it is not alone: it pays for marks in vain.
  static std::array<std::atomic<int>, 64> count{};
  return count[static_cast<std::size_t>(ordinal) % count.size()];
}

/// The place of a launch among those of the process.
std::uint64_t nextOrder() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// Asks events, in the device's context, whatever this thread captures. Logs nothing: at the end of the process the
/// driver refuses every call.
class Asking {
 public:
  explicit Asking(const gpu::Device& device) : driver_(device.driver()) {
    pushed_ = driver_.cuCtxPushCurrent(device.context()) == CUDA_SUCCESS;
    if (pushed_) static_cast<void>(driver_.cuThreadExchangeStreamCaptureMode(&mode_));
  }
  Asking(const Asking&) = delete;
  ~Asking() {
    if (!pushed_) return;
    static_cast<void>(driver_.cuThreadExchangeStreamCaptureMode(&mode_));
    CUcontext popped = nullptr;
    static_cast<void>(driver_.cuCtxPopCurrent(&popped));
  }
  bool works() const { return pushed_; }
  CUresult query(CUevent event) const { return driver_.cuEventQuery(event); }

 private:
  const gpu::Driver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool pushed_ = false;
};

}  // namespace

LaunchMarks::LaunchMarks(const gpu::Device& device) : device_(&device), neighbours_(&marksOn(device.ordinal())) {
  neighbours_->fetch_add(1);
}

LaunchMarks::~LaunchMarks() {
  neighbours_->fetch_sub(1);
}

bool LaunchMarks::severalHere() const {
  return neighbours_->load(std::memory_order_relaxed) > 1;
}

/// Where the oldest mark lies, if its launch has ended.
std::optional<std::size_t> LaunchMarks::freePlace() {
  const std::size_t place = launches_ % kMarks;
  const Mark& old = marks_[place];
  if (old.launch == 0 || !old.closed) return place;
  // The thread may be capturing another stream, which must not suffer.
  const Asking driver(*device_);
  if (!driver.works() || driver.query(old.after->get()) == CUDA_ERROR_NOT_READY) return std::nullopt;
  return place;
}

Status LaunchMarks::open(Mark& mark, CUstream stream) {
  mark.launch = 0;
  if (!mark.before) {
    ASSIGN(mark.before, gpu::Event::create(*device_));
    ASSIGN(mark.after, gpu::Event::create(*device_));
  }
  return mark.before->record(stream);
}

void LaunchMarks::heed(Status status) {
  if (status.ok()) return;
  given_ = true;
  open_ = nullptr;
  for (Mark& mark : marks_) mark.launch = 0;
  info(kColl, "what is in front of a launch is not looked for any more: {}", lastErrorText());
}

void LaunchMarks::begin(CUstream stream, const LaunchedCall& call) {
  const std::lock_guard lock(mutex_);
  const std::optional<std::size_t> place = severalHere() && !given_ ? freePlace() : std::nullopt;
  ++launches_;
  last_ = call;
  open_ = nullptr;
  if (!place) return;
  const ErrorsAsInfo quiet;
  Mark& mark = marks_[*place];
  const Status opened = open(mark, stream);
  if (!opened.ok()) return heed(opened);
  mark.launch = launches_;
  mark.closed = false;
  mark.call = call;
  mark.order = nextOrder();
  mark.stream = stream;
  open_ = &mark;
}

void LaunchMarks::end() {
  const std::lock_guard lock(mutex_);
  Mark* const mark = std::exchange(open_, nullptr);
  if (mark == nullptr) return;
  const ErrorsAsInfo quiet;
  const Status closed = mark->after->record(mark->stream);
  if (!closed.ok()) return heed(closed);
  mark->closed = true;
}

/// The marks in the order of their launches.
std::size_t LaunchMarks::list(Sights& sights) const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (std::size_t place = 0; place < marks_.size(); ++place) {
    const Mark& mark = marks_[place];
    if (mark.launch == 0 || !mark.closed) continue;
    sights[count++] = {place, mark.launch, mark.before->get(), mark.after->get()};
  }
  std::sort(sights.begin(), sights.begin() + static_cast<std::ptrdiff_t>(count),
            [](const Seen& a, const Seen& b) { return a.launch < b.launch; });
  return count;
}

LaunchMarks::Front LaunchMarks::describe(const Seen& seen, Front::State state) const {
  const std::lock_guard lock(mutex_);
  const Mark& mark = marks_[seen.place];
  // Its events may have been asked about another launch meanwhile.
  if (mark.launch != seen.launch) return {};
  return {state, mark.call, mark.order, mark.stream};
}

/// The first one that has not ended and not begun: only if all before it have ended something else is in front of it.
LaunchMarks::Front LaunchMarks::queued(const Seen& first, std::uint64_t endedBefore) const {
  const bool known = first.launch == endedBefore + 1 && !captured_.load(std::memory_order_relaxed);
  return known ? describe(first, Front::State::Queued) : Front{};
}

LaunchMarks::Front LaunchMarks::ask(const Sights& sights, std::size_t count) const {
  const Asking driver(*device_);
  if (!driver.works()) return {};
  std::uint64_t ended = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Seen& seen = sights[i];
    const CUresult after = driver.query(seen.after);
    if (after == CUDA_SUCCESS) {
      ended = seen.launch;
      continue;
    }
    if (after != CUDA_ERROR_NOT_READY) return {};
    const CUresult before = driver.query(seen.before);
    if (before == CUDA_SUCCESS) return describe(seen, Front::State::Begun);
    return before == CUDA_ERROR_NOT_READY ? queued(seen, ended) : Front{};
  }
  const std::lock_guard lock(mutex_);
  return {ended == launches_ ? Front::State::Ended : Front::State::Unknown, {}, 0, nullptr};
}

LaunchedCall LaunchMarks::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

LaunchMarks::Front LaunchMarks::front() const {
  Sights sights{};
  return ask(sights, list(sights));
}

}  // namespace tutti::comm
