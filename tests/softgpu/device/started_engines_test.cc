#include "softgpu/device/started_engines.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <thread>
#include <vector>

namespace tutti::softgpu::test {
namespace {

/// Something with an address: an engine is never looked into here.
Engine& someEngine(char& place) {
  return reinterpret_cast<Engine&>(place);
}

TEST(StartedEngines, AreThoseThatWereAddedInTheirOrder) {
  StartedEngines engines(1000);
  EXPECT_EQ(engines.size(), 0U) << "devices without an engine are not gone through";
  std::array<char, 2> places{};
  engines.add(someEngine(places[1]));
  engines.add(someEngine(places[0]));
  ASSERT_EQ(engines.size(), 2U);
  EXPECT_EQ(engines.at(0), &someEngine(places[1]));
  EXPECT_EQ(engines.at(1), &someEngine(places[0]));
}

TEST(StartedEngines, AddedBySeveralThreadsAreAllThere) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kEach = 100;
  StartedEngines engines(kThreads * kEach);
  std::array<std::array<char, kEach>, kThreads> places{};
  std::vector<std::thread> threads;
  for (auto& mine : places) {
    threads.emplace_back([&engines, &mine] {
      for (char& place : mine) engines.add(someEngine(place));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<const Engine*> seen;
  for (std::size_t i = 0; i < engines.size(); ++i) seen.insert(engines.at(i));
  EXPECT_EQ(seen.size(), kThreads * kEach);
  EXPECT_EQ(seen.count(nullptr), 0U);
}

}  // namespace
}  // namespace tutti::softgpu::test
