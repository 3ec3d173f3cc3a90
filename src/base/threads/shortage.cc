#include "base/threads/shortage.h"

#include <chrono>
#include <new>
#include <thread>

namespace tutti {

void throughShortages(const std::function<void()>& body) {
  constexpr auto kPause = std::chrono::milliseconds(10);
  while (true) {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kPause);
    }
  }
}

void ignoringShortage(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace tutti
