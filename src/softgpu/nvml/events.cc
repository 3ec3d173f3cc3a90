// Sets of events. Nothing ever happens to a software GPU: no set is told of anything.
#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "softgpu/nvml/call.h"

using namespace tutti::softgpu;
using namespace tutti::softgpu::nvml;

namespace {

/// However long a caller wants to wait, so that one that waits without an end is asked again what it waits for.
constexpr std::chrono::milliseconds kLongestWait{10'000};

struct Sets {
  std::mutex lock;
  std::set<std::unique_ptr<char>> made;  ///< the addresses are the handles
};

Sets& sets() {
  static auto* all = new Sets;
  return *all;
}

auto locate(Sets& all, EventSet set) {
  return std::find_if(all.made.begin(), all.made.end(),
                      [&](const auto& made) { return reinterpret_cast<EventSet>(made.get()) == set; });
}

}  // namespace

extern "C" {

Result nvmlEventSetCreate(EventSet* set) {
  return call([&]() -> Result {
    if (set == nullptr) return kInvalidArgument;
    auto made = std::make_unique<char>();
    *set = reinterpret_cast<EventSet>(made.get());
    std::lock_guard<std::mutex> guard(sets().lock);
    sets().made.insert(std::move(made));
    return kSuccess;
  });
}

Result nvmlEventSetFree(EventSet set) {
  return call([&]() -> Result {
    std::lock_guard<std::mutex> guard(sets().lock);
    const auto found = locate(sets(), set);
    if (found == sets().made.end()) return kInvalidArgument;
    sets().made.erase(found);
    return kSuccess;
  });
}

/// Waits for `milliseconds`, at most 10 s, and has nothing to tell.
Result nvmlEventSetWait_v2(EventSet set, void* event, unsigned milliseconds) {
  return call([&]() -> Result {
    if (event == nullptr) return kInvalidArgument;
    {
      std::lock_guard<std::mutex> guard(sets().lock);
      if (locate(sets(), set) == sets().made.end()) return kInvalidArgument;
    }
    std::this_thread::sleep_for(std::min(kLongestWait, std::chrono::milliseconds(milliseconds)));
    return kTimeout;
  });
}

Result nvmlDeviceGetSupportedEventTypes(Device device, unsigned long long* types) {
  return tell(device, types, [](const Gpu&) { return 0ull; });
}

/// None is supported.
Result nvmlDeviceRegisterEvents(Device device, unsigned long long types, EventSet set) {
  return withGpu(device, [&](const Gpu&) -> Result {
    std::lock_guard<std::mutex> guard(sets().lock);
    if (locate(sets(), set) == sets().made.end()) return kInvalidArgument;
    return types == 0 ? kSuccess : kNotSupported;
  });
}

}  // extern "C"
