#include "softgpu/device/kernel_task.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "softgpu/device/context.h"
#include "softgpu/device/device.h"
#include "softgpu/device/engine.h"
#include "softgpu/device/event.h"
#include "softgpu/exec/random.h"
#include "softgpu/exec/weak_memory.h"
#include "softgpu/say.h"

namespace tutti::softgpu {
namespace {

constexpr std::int64_t kSliceNanoseconds = 100'000;  ///< between two looks at other streams

/// Threads of GPU code that are resident at first: each has a stack, and all run before other streams have their turn.
constexpr std::size_t kUsualCrowd = 2048;
/// Passes in which no block ends before others come in as well: they may be what is waited for.
constexpr int kPatience = 16;

}  // namespace

KernelTask::KernelTask(const KernelOperation& kernel, Context& context)
    : kernel_(kernel),
      context_(context),
      // Those compiled for the host are few, and wait for one another from the start.
      crowd_(kernel.code == nullptr ? ~std::size_t{0} : kUsualCrowd) {
  if (kernel.begun == nullptr) return;
  begun_ = std::make_shared<Marker>();
  kernel.begun->last = begun_;
  kernel.begun->capture = nullptr;
}

void KernelTask::tellBegun() {
  if (begun_ != nullptr) std::exchange(begun_, nullptr)->complete();
}

Step KernelTask::fail(Engine& engine, CUresult error, const std::string& why) {
  say("device %d: kernel %s failed: %s", engine.deviceIndex(), kernel_.kernel->name, why.c_str());
  context_.setError(error);
  tellBegun();
  engine.releaseSlots(static_cast<int>(resident_.size()));
  resident_.clear();
  return Step::Done;
}

bool KernelTask::hasRoom() const {
  return resident_.empty() || (resident_.size() + 1) * kernel_.threads <= crowd_;
}

/// After a pass in which no block ended. False if that changes nothing.
bool KernelTask::makeRoom(bool progress) {
  if (nextBlock_ == kernel_.blocks || hasRoom()) return false;
  if (progress && ++passesSinceAnEnd_ < kPatience) return false;
  passesSinceAnEnd_ = 0;
  crowd_ = std::max(2 * crowd_, 2 * std::size_t{kernel_.threads});
  return true;
}

bool KernelTask::admit(Engine& engine) {
  while (nextBlock_ < kernel_.blocks && hasRoom() && engine.takeSlot()) {
    resident_.push_back(engine.blocks().take(kernel_, nextBlock_, engine.stacks(), engine.weakMemory(kernel_.threads)));
    if (!resident_.back()->ready()) return false;
    ++nextBlock_;
  }
  return true;
}

bool KernelTask::runResident(Engine& engine) {
  Random* random = engine.random();
  bool progress = false;
  const std::size_t first = random == nullptr ? 0 : random->below(resident_.size());
  for (std::size_t i = 0; i < resident_.size(); ++i) {
    if (random != nullptr && random->below(4) == 0 && resident_.size() > 1) {
      progress = true;  // skipped by the dice, not idle
      continue;
    }
    Block& block = *resident_[(first + i) % resident_.size()];
    if (block.runPass(random) || block.storesPending()) progress = true;
    if (block.trapped() != nullptr) return true;
  }
  return progress;
}

/// Holds a slot only meanwhile: the rest of the device goes on between two slices.
Step KernelTask::runWhole(Engine& engine) {
  if (!engine.takeSlot()) return Step::Polling;
  if (shared_.empty()) {
    shared_.resize(kernel_.sharedBytes() / sizeof(std::max_align_t) + 1);
    // As on a GPU, where nobody clears it.
    if (engine.weakMemory(1) != nullptr) std::memset(shared_.data(), 0xa5, shared_.size() * sizeof(std::max_align_t));
  }
  const simt::HostShape shape = kernel_.shape();
  simt::HostThread self = {};
  self.shared = shared_.data();
  self.threads = kernel_.threads;
  self.blocks = kernel_.blocks;
  self.shape = &shape;
  self.variables = kernel_.variables();
  const std::int64_t end = Engine::now() + kSliceNanoseconds;
  do {
    self.block = nextBlock_++;
    kernel_.kernel->wholeBlock(&self, kernel_.params.get());
    if (engine.random() != nullptr && engine.random()->below(4) == 0) break;
  } while (nextBlock_ < kernel_.blocks && Engine::now() < end);
  engine.releaseSlots(1);
  if (nextBlock_ != kernel_.blocks) return Step::Progress;
  tellBegun();
  return Step::Done;
}

/// Its blocks leave their slots to others.
void KernelTask::abandon() {
  tellBegun();
  context_.device().engine().releaseSlots(static_cast<int>(resident_.size()));
  resident_.clear();
}

Step KernelTask::step(Engine& engine) {
  if (kernel_.kernel->wholeBlock != nullptr) return runWhole(engine);
  if (!admit(engine)) {
    const int why = errno;
    return fail(engine, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                "no stacks for the " + std::to_string(kernel_.threads) + " threads of block " +
                    std::to_string(nextBlock_) + ": " + std::strerror(why) +
                    " (a limit on memory, or vm.max_map_count; fewer threads or channels need less)");
  }
  if (resident_.empty()) return Step::Polling;  // every slot is taken: one becomes free when another kernel ends
  bool progress = runResident(engine);
  if (nextBlock_ == kernel_.blocks) tellBegun();
  bool ended = false;
  for (std::size_t i = 0; i < resident_.size();) {
    if (const std::string* message = resident_[i]->trapped()) {
      return fail(engine, CUDA_ERROR_LAUNCH_FAILED, "a thread trapped: " + *message);
    }
    if (!resident_[i]->finished()) {
      ++i;
      continue;
    }
    engine.blocks().give(std::move(resident_[i]));
    resident_.erase(resident_.begin() + static_cast<std::ptrdiff_t>(i));
    engine.releaseSlots(1);
    progress = ended = true;
  }
  if (resident_.empty() && nextBlock_ == kernel_.blocks) return Step::Done;
  if (ended) passesSinceAnEnd_ = 0;
  if (!ended && makeRoom(progress)) return Step::Progress;
  return progress ? Step::Progress : Step::Polling;
}

}  // namespace tutti::softgpu
