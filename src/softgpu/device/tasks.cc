#include "softgpu/device/tasks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "softgpu/device/engine.h"
#include "softgpu/device/kernel_task.h"
#include "softgpu/device/machine.h"
#include "softgpu/exec/callback_thread.h"
#include "softgpu/memory/zero_fill.h"
#include "softgpu/say.h"

namespace tutti::softgpu {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{512} << 10;  ///< work between two looks at other streams

/// Aligned words of what is no longer than that are copied each at once, as hardware does: kernels count there
/// meanwhile.
constexpr std::size_t kWordwiseBytes = 512;

/// Whether it was done so.
template <class Word>
bool copyWordwise(char* to, const char* from, std::size_t bytes) {
  const std::uintptr_t any = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes;
  if (bytes > kWordwiseBytes || any % sizeof(Word) != 0) return false;
  std::array<Word, kWordwiseBytes / sizeof(Word)> words;  // the two may overlap
  const std::size_t count = bytes / sizeof(Word);
  for (std::size_t i = 0; i < count; ++i) {
    words[i] = __atomic_load_n(reinterpret_cast<const Word*>(from) + i, __ATOMIC_RELAXED);
  }
  for (std::size_t i = 0; i < count; ++i) __atomic_store_n(reinterpret_cast<Word*>(to) + i, words[i], __ATOMIC_RELAXED);
  return true;
}

void copyBytes(char* to, const char* from, std::size_t bytes) {
  if (copyWordwise<std::uint64_t>(to, from, bytes) || copyWordwise<std::uint32_t>(to, from, bytes)) return;
  std::memmove(to, from, bytes);
}

class EmptyTask : public Task {
 public:
  Step step(Engine&) override { return Step::Done; }
};

class CopyTask : public Task {
 public:
  explicit CopyTask(const CopyOperation& copy) : copy_(copy) {}
  Step step(Engine&) override {
    for (std::size_t budget = kChunkBytes; row_ < copy_.height && budget > 0;) {
      const std::size_t bytes = std::min(budget, copy_.width - column_);
      copyBytes(copy_.destination + row_ * copy_.destinationPitch + column_,
                copy_.source + row_ * copy_.sourcePitch + column_, bytes);
      column_ += bytes;
      budget -= bytes;
      if (column_ < copy_.width) continue;
      column_ = 0;
      ++row_;
    }
    return row_ == copy_.height || copy_.width == 0 ? Step::Done : Step::Progress;
  }

 private:
  CopyOperation copy_;
  std::size_t row_ = 0;
  std::size_t column_ = 0;
};

class FillTask : public Task {
 public:
  explicit FillTask(const FillOperation& fill) : fill_(fill) {}
  Step step(Engine&) override {
    for (std::size_t budget = kChunkBytes; row_ < fill_.height && budget > 0; ++row_) {
      char* row = fill_.destination + row_ * fill_.pitch;
      if (fill_.value == 0) {
        zeroFill(machine().memory, row, fill_.width * fill_.elementBytes);
      } else if (fill_.elementBytes == 1) {
        std::memset(row, static_cast<int>(fill_.value & 0xff), fill_.width);
      } else {
        for (std::size_t i = 0; i < fill_.width; ++i) {
          std::memcpy(row + i * fill_.elementBytes, &fill_.value, fill_.elementBytes);
        }
      }
      budget -= std::min(budget, fill_.width * fill_.elementBytes);
    }
    return row_ == fill_.height ? Step::Done : Step::Progress;
  }

 private:
  FillOperation fill_;
  std::size_t row_ = 0;
};

class HostTask : public Task {
 public:
  HostTask(const HostOperation& call, Device& device) : call_(call), device_(device) {
    if (!calls_.expect(call_.function)) {
      say("a host function was put into a stream, or a graph with it launched, after the program had withdrawn it, as "
          "Python does when it ends: it is not called, and what follows it finds none of its results");
    }
  }
  ~HostTask() override {
    if (done_ == nullptr) calls_.forget(call_.function);
  }
  Step step(Engine& engine) override {
    if (done_ == nullptr) {
      done_ = std::make_shared<std::atomic<bool>>(false);
      device_.callbacks().post(calls_, call_, [done = done_, &engine, &calls = calls_, function = call_.function] {
        done->store(true, std::memory_order_release);
        engine.wake();
        calls.forget(function);
      });
    }
    return done_->load(std::memory_order_acquire) ? Step::Done : Step::Blocked;
  }

 private:
  HostOperation call_;
  Device& device_;
  HostCalls& calls_ = machine().hostCalls;
  std::shared_ptr<std::atomic<bool>> done_;
};

class RecordTask : public Task {
 public:
  explicit RecordTask(Event& event) : marker_(std::make_shared<Marker>()), page_(event.sharedPage) {
    event.last = marker_;
    event.capture = nullptr;
    if (event.shared() != nullptr) number_ = event.shared()->recorded.fetch_add(1) + 1;
  }
  Step step(Engine&) override {
    abandon();
    return Step::Done;
  }
  void abandon() override {
    marker_->complete();
    if (page_ == nullptr) return;
    auto& completed = reinterpret_cast<SharedEvent*>(page_->base())->completed;
    for (std::uint64_t seen = completed.load(); seen < number_ && !completed.compare_exchange_weak(seen, number_);) {
    }
  }

 private:
  std::shared_ptr<Marker> marker_;
  std::shared_ptr<Backing> page_;
  std::uint64_t number_ = 0;
};

class WaitTask : public Task {
 public:
  explicit WaitTask(const Event& event) : marker_(event.last), page_(event.sharedPage) {
    if (page_ != nullptr) number_ = event.shared()->recorded.load();
  }
  Step step(Engine& engine) override {
    if (page_ != nullptr) {
      const auto* shared = reinterpret_cast<const SharedEvent*>(page_->base());
      return shared->completed.load(std::memory_order_acquire) >= number_ ? Step::Done : Step::Polling;
    }
    if (marker_ == nullptr || marker_->done.load(std::memory_order_acquire)) return Step::Done;
    if (registered_) return Step::Blocked;
    std::lock_guard<std::mutex> guard(machine().lock);
    if (marker_->done.load()) return Step::Done;
    marker_->waiters.push_back(&engine);
    registered_ = true;
    return Step::Blocked;
  }

 private:
  std::shared_ptr<Marker> marker_;
  std::shared_ptr<Backing> page_;
  std::uint64_t number_ = 0;
  bool registered_ = false;
};

class WordTask : public Task {
 public:
  explicit WordTask(const WordOperation& word) : word_(word) {}
  Step step(Engine&) override {
    const bool done = word_.wide ? act<std::uint64_t, std::int64_t>() : act<std::uint32_t, std::int32_t>();
    return done ? Step::Done : Step::Polling;
  }

 private:
  template <class T, class Signed>
  bool act() {
    std::atomic_ref<T> word(*static_cast<T*>(word_.address));
    const T wanted = static_cast<T>(word_.value);
    if (word_.write) {
      word.store(wanted, std::memory_order_release);
      return true;
    }
    const T value = word.load(std::memory_order_acquire);
    const unsigned how = word_.flags & 3u;
    if (how == CU_STREAM_WAIT_VALUE_EQ) return value == wanted;
    if (how == CU_STREAM_WAIT_VALUE_AND) return (value & wanted) != 0;
    if (how == CU_STREAM_WAIT_VALUE_NOR) return static_cast<T>(~(value | wanted)) != 0;
    return static_cast<Signed>(static_cast<T>(value - wanted)) >= 0;
  }
  WordOperation word_;
};

class FreeTask : public Task {
 public:
  explicit FreeTask(std::uintptr_t base) : base_(base) {}
  Step step(Engine&) override {
    if (const auto allocation = machine().memory.take(base_)) {
      machine().devices[static_cast<std::size_t>(allocation->device)]->release(*allocation);
    }
    return Step::Done;
  }

 private:
  std::uintptr_t base_;
};

struct TaskMaker {
  Context& context;
  std::unique_ptr<Task> operator()(const EmptyOperation&) { return std::make_unique<EmptyTask>(); }
  std::unique_ptr<Task> operator()(const CopyOperation& o) { return std::make_unique<CopyTask>(o); }
  std::unique_ptr<Task> operator()(const FillOperation& o) { return std::make_unique<FillTask>(o); }
  std::unique_ptr<Task> operator()(const HostOperation& o) { return std::make_unique<HostTask>(o, context.device()); }
  std::unique_ptr<Task> operator()(const RecordOperation& o) { return std::make_unique<RecordTask>(*o.event); }
  std::unique_ptr<Task> operator()(const WaitOperation& o) { return std::make_unique<WaitTask>(*o.event); }
  std::unique_ptr<Task> operator()(const WordOperation& o) { return std::make_unique<WordTask>(o); }
  std::unique_ptr<Task> operator()(const KernelOperation& o) { return std::make_unique<KernelTask>(o, context); }
  std::unique_ptr<Task> operator()(const FreeOperation& o) { return std::make_unique<FreeTask>(o.base); }
  std::unique_ptr<Task> operator()(const GraphOperation& o) {
    return makeGraphTask(o.graph, context, nullptr, nullptr);
  }
};

}  // namespace

std::unique_ptr<Task> makeTask(const Operation& operation, Context& context) {
  return std::visit(TaskMaker{context}, operation);
}

}  // namespace tutti::softgpu
