#include "comm/launch/graph_refs.h"

#include <mutex>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/never_destroyed.h"
#include "gpu/context.h"

namespace tutti::comm {

namespace {

/// What is to be freed, by whoever comes next.
struct Abandoned {
  std::mutex mutex;
  std::vector<std::shared_ptr<void>> estates;
};

Abandoned& abandoned() {
  static NeverDestroyed<Abandoned> instance;
  return instance.get();
}

}  // namespace

struct GraphRefs::State {
  std::mutex mutex;
  int holds = 0;
  std::shared_ptr<void> parts;
};

/// What a graph owns: one count.
struct GraphRefs::Hold {
  Hold(std::shared_ptr<State> shared, std::shared_ptr<const void> keeps)
      : state(std::move(shared)), kept(std::move(keeps)) {
    const std::lock_guard lock(state->mutex);
    ++state->holds;
  }
  Hold(const Hold&) = delete;
  ~Hold() {
    std::shared_ptr<void> parts;
    {
      const std::lock_guard lock(state->mutex);
      if (--state->holds == 0) parts = std::move(state->parts);
    }
    if (!parts) return;
    const std::lock_guard lock(abandoned().mutex);
    abandoned().estates.push_back(std::move(parts));
  }
  std::shared_ptr<State> state;
  std::shared_ptr<const void> kept;
};

GraphRefs::GraphRefs() : state_(std::make_shared<State>()) {}

Status GraphRefs::addTo(const gpu::Device& device, CUgraph graph, std::shared_ptr<const void> kept) {
  const gpu::Driver& driver = device.driver();
  if (driver.cuUserObjectCreate == nullptr || driver.cuGraphRetainUserObject == nullptr ||
      driver.cuUserObjectRelease == nullptr) {
    return fail(ncclInvalidUsage,
                "The CUDA driver of device {} is too old to capture operations in graphs: it lacks user "
                "objects (CUDA 11.3). Update it",
                device.ordinal());
  }
  auto hold = std::make_unique<Hold>(state_, std::move(kept));
  // Runs on a thread of the driver, where no CUDA call is allowed.
  const CUhostFn drop = [](void* held) { std::unique_ptr<Hold>(static_cast<Hold*>(held)).reset(); };
  CUuserObject object = nullptr;
  TRY(device.check(driver.cuUserObjectCreate(&object, hold.get(), drop, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
                   "cuUserObjectCreate"));
  static_cast<void>(hold.release());  // belongs to the user object
  const CUresult retained = driver.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
  if (retained == CUDA_SUCCESS) return {};
  device.check(driver.cuUserObjectRelease(object, 1), "cuUserObjectRelease").ignore();
  return device.check(retained, "cuGraphRetainUserObject");
}

bool GraphRefs::any() const {
  const std::lock_guard lock(state_->mutex);
  return state_->holds > 0;
}

bool GraphRefs::deferFree(std::shared_ptr<void> parts) {
  const std::lock_guard lock(state_->mutex);
  if (state_->holds == 0) return false;
  state_->parts = std::move(parts);
  return true;
}

std::vector<std::shared_ptr<void>> GraphRefs::takeAbandoned() {
  const std::lock_guard lock(abandoned().mutex);
  return std::exchange(abandoned().estates, {});
}

}  // namespace tutti::comm
