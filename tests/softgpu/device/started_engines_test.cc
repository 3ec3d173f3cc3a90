#include "softgpu/device/started_engines.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace tutti::softgpu::test {
namespace {

/// Something with an address: an engine is never looked into here.
Engine& someEngine(char& place) {
  return reinterpret_cast<Engine&>(place);
}

std::vector<const Engine*> inOrder(const StartedEngines& engines) {
  std::vector<const Engine*> order;
  for (auto place = engines.first(); place != StartedEngines::kNone; place = engines.next(place)) {
    order.push_back(&engines.at(place));
  }
  return order;
}

TEST(StartedEngines, OfDevicesThatAreNotUsedAreNotGoneThrough) {
  StartedEngines engines(1000);
  EXPECT_EQ(engines.first(), StartedEngines::kNone);
  std::array<char, 1> places{};
  engines.add(someEngine(places[0]), 999);
  EXPECT_EQ(inOrder(engines).size(), 1U);
}

TEST(StartedEngines, AreGoneThroughByDeviceWhateverTheOrderOfStarting) {
  std::array<char, 5> places{};
  for (const std::array<int, 5> started : {std::array{3, 0, 4, 1, 2}, {4, 3, 2, 1, 0}, {0, 1, 2, 3, 4}}) {
    StartedEngines engines(places.size());
    for (const int device : started) engines.add(someEngine(places[static_cast<std::size_t>(device)]), device);
    std::vector<const Engine*> expected;
    for (char& place : places) expected.push_back(&someEngine(place));
    EXPECT_EQ(inOrder(engines), expected);
  }
}

TEST(StartedEngines, KeepTheirPlacesWhenOthersAreStarted) {
  StartedEngines engines(2);
  std::array<char, 2> places{};
  engines.add(someEngine(places[1]), 1);
  const auto place = engines.first();
  engines.add(someEngine(places[0]), 0);
  EXPECT_EQ(&engines.at(place), &someEngine(places[1]));
  EXPECT_EQ(engines.next(engines.first()), place);
}

TEST(StartedEngines, AddedBySeveralThreadsAreAllThereWhileOthersGoThroughThem) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kEach = 100;
  StartedEngines engines(kThreads * kEach);
  std::array<std::array<char, kEach>, kThreads> places{};
  std::atomic<bool> over{false};
  std::thread reader([&] {
    while (!over) {
      for (auto place = engines.first(); place != StartedEngines::kNone; place = engines.next(place)) {
        ASSERT_LT(place, engines.size());
      }
    }
  });
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t i = 0; i < kEach; ++i) {
        engines.add(someEngine(places[thread][i]), static_cast<int>(i * kThreads + thread));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  over = true;
  reader.join();
  const std::vector<const Engine*> order = inOrder(engines);
  EXPECT_EQ(std::set(order.begin(), order.end()).size(), kThreads * kEach);
}

}  // namespace
}  // namespace tutti::softgpu::test
