#include "softgpu/memory/window.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace tutti::softgpu {
namespace {

/// The window begins with one word per exported allocation: its id for as long as it exists.
constexpr std::size_t kMarksBytes = std::size_t{2} << 20;
constexpr std::uint32_t kMarks = kMarksBytes / sizeof(std::uint64_t);

/// Address space for what is in use and for what has been given up (see Window).
constexpr std::uint64_t kReserve = 4;
#if defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kLargestWindow = std::uint64_t{16} << 30;  // it leaves programs 1.5 TiB of addresses
#else
constexpr std::uint64_t kLargestWindow = std::uint64_t{8} << 40;  // others' windows need addresses too
#endif

constexpr std::size_t roundUpTo(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::size_t windowBytes(std::uint64_t deviceBytes) {
  const std::uint64_t wanted = std::min(deviceBytes, kLargestWindow / kReserve) * kReserve;
  return kMarksBytes + roundUpTo(wanted, Window::kLargeAlignment);
}

std::size_t alignmentFor(std::size_t size) {
  return size <= Window::kLargestSmall ? Window::kSmallAlignment : Window::kLargeAlignment;
}

std::uint64_t* markIn(const Backing& window, std::uint32_t mark) {
  return reinterpret_cast<std::uint64_t*>(window.base()) + mark;
}

/// Where the range that `at` is in ends; `at`: it is in none.
std::size_t endOf(const std::map<std::size_t, std::size_t>& ranges, std::size_t at) {
  const auto after = ranges.upper_bound(at);
  if (after == ranges.begin()) return at;
  const auto& [offset, bytes] = *std::prev(after);
  return std::max(at, offset + bytes);
}

/// Adds a range to `ranges`, and joins it with its neighbours.
void join(std::map<std::size_t, std::size_t>& ranges, std::size_t offset, std::size_t bytes) {
  auto next = ranges.lower_bound(offset);
  if (next != ranges.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = ranges.erase(next);
  }
  if (next != ranges.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
    }
  }
  ranges[offset] = bytes;
}

}  // namespace

Window::Window(int physicalDevice, std::uint64_t deviceBytes)
    : physicalDevice_(physicalDevice), bytes_(windowBytes(deviceBytes)) {}

std::shared_ptr<Backing> Window::backing() {
  std::lock_guard<std::mutex> guard(lock_);
  if (tried_) return backing_;
  tried_ = true;
  backing_ = Backing::create(bytes_, physicalDevice_);
  if (backing_ != nullptr) gaps_.emplace(kMarksBytes, bytes_ - kMarksBytes);
  return backing_;
}

std::optional<std::size_t> Window::allocate(std::size_t size) {
  if (backing() == nullptr) return std::nullopt;
  const std::size_t alignment = alignmentFor(size);
  const std::size_t bytes = roundUpTo(size, kSmallAlignment);
  std::lock_guard<std::mutex> guard(lock_);
  for (auto it = gaps_.begin(); it != gaps_.end(); ++it) {
    const auto [offset, gap] = *it;
    const std::size_t begin = roundUpTo(offset, alignment);
    if (begin - offset > gap || gap - (begin - offset) < bytes) continue;
    const std::size_t rest = gap - (begin - offset) - bytes;
    if (begin == offset) {
      gaps_.erase(it);
    } else {
      it->second = begin - offset;
    }
    if (rest != 0) gaps_.emplace(begin + bytes, rest);
    return begin;
  }
  return std::nullopt;
}

std::uint32_t Window::takeMark() {
  if (freeMarks_.empty()) return nextMark_ < kMarks ? nextMark_++ : kUnmarked;
  const std::uint32_t mark = freeMarks_.back();
  freeMarks_.pop_back();
  return mark;
}

std::uint32_t Window::exportRange(Allocation& allocation) {
  std::lock_guard<std::mutex> guard(lock_);
  if (allocation.mark == 0) {
    allocation.mark = takeMark();
    if (allocation.mark != kUnmarked) {
      std::atomic_ref<std::uint64_t>(*markIn(*backing_, allocation.mark)).store(allocation.id);
    }
  }
  return allocation.mark;
}

void Window::free(const Allocation& allocation) {
  const std::size_t offset = allocation.offset;
  const std::size_t bytes = roundUpTo(allocation.size, kSmallAlignment);
  std::lock_guard<std::mutex> guard(lock_);
  const bool exported = allocation.mark != 0;
  if (exported && allocation.mark != kUnmarked) {
    std::atomic_ref<std::uint64_t>(*markIn(*backing_, allocation.mark)).store(0);
    freeMarks_.push_back(allocation.mark);
  }
  join(exported ? retired_ : gaps_, offset, bytes);
  // Pages at its ends go as well where nobody uses the rest of them, be that a gap or retired.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t first = offset / page * page;
  const std::size_t last = roundUpTo(offset + bytes, page);
  punch(unused(first, offset) ? first : first + page, unused(offset + bytes, last) ? last : last - page);
}

bool Window::unused(std::size_t begin, std::size_t end) const {
  for (std::size_t at = begin; at < end;) {
    const std::size_t next = std::max(endOf(gaps_, at), endOf(retired_, at));
    if (next == at) return false;
    at = next;
  }
  return true;
}

void Window::punch(std::size_t begin, std::size_t end) {
  if (begin >= end) return;
  // By address and not by descriptor, which the program may have closed.
  while (::madvise(backing_->base() + begin, end - begin, MADV_REMOVE) != 0 && errno == EINTR) {
  }
}

bool Window::marked(const Backing& window, std::uint32_t mark, std::uint64_t id) {
  return mark == kUnmarked || mark >= kMarks || std::atomic_ref<std::uint64_t>(*markIn(window, mark)).load() == id;
}

}  // namespace tutti::softgpu
