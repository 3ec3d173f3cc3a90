#include "lifecycle/leaks.h"

#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

#include "cuda_runtime_api.h"

namespace lifecycle {

Holdings holdings(int firstDevice, int lastDevice) {
  Holdings now;
  for (int device = firstDevice; device <= lastDevice; ++device) {
    std::size_t left = 0;
    std::size_t total = 0;
    cudaSetDevice(device);
    cudaMemGetInfo(&left, &total);
    now.freeBytes.push_back(left);
  }
  const std::filesystem::directory_iterator open("/proc/self/fd");
  now.descriptors = static_cast<std::size_t>(std::distance(begin(open), end(open)));
  return now;
}

std::string describe(const Holdings& holdings) {
  std::string text = std::to_string(holdings.descriptors) + " descriptors; free bytes by device:";
  for (const std::size_t bytes : holdings.freeBytes) text += " " + std::to_string(bytes);
  return text;
}

std::string leaked(const Holdings& before, int firstDevice, int lastDevice, const std::function<void()>& sweep) {
  constexpr int kTriesForASweep = 20;
  Holdings now;
  for (int tries = 1; tries <= 200; ++tries) {
    now = holdings(firstDevice, lastDevice);
    if (now == before) return {};
    if (tries % kTriesForASweep == 0) sweep();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::string open;
  for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    open += " " + std::filesystem::read_symlink(one.path(), gone).string();
  }
  return "before: " + describe(before) + "; now: " + describe(now) + "; open are" + open;
}

}  // namespace lifecycle
