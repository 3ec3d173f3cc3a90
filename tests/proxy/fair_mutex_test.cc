#include "proxy/fair_mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/clock.h"
#include "proxy/fakes.h"

namespace tutti::proxy {
namespace {

TEST(FairMutex, VisitorIsServedBetweenRoundsOfABusyEngine) {
  FairMutex turns;
  std::atomic<bool> ended{false};
  std::atomic<long> rounds{0};
  std::thread engine([&] {
    while (!ended.load()) {
      const FairMutex::Round round(turns);
      rounds.fetch_add(1);
    }
  });
  EXPECT_TRUE(test::eventually([&] { return rounds.load() > 0; }));
  constexpr int kVisits = 200;
  const auto start = SteadyClock::now();
  for (int i = 0; i < kVisits; ++i) const FairMutex::Visit visit(turns);
  EXPECT_LT(secondsSince(start), 5.0);
  ended.store(true);
  engine.join();
}

TEST(FairMutex, StormOfVisitorsDoesNotKeepTheEngineOut) {
  FairMutex turns;
  int shared = 0;  // under the turns
  std::atomic<bool> ended{false};
  std::vector<std::thread> visitors;
  for (int i = 0; i < 3; ++i) {
    visitors.emplace_back([&] {
      while (!ended.load()) {
        const FairMutex::Visit visit(turns);
        ++shared;
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    const FairMutex::Round round(turns);
    ++shared;
  }
  ended.store(true);
  for (auto& visitor : visitors) visitor.join();
  EXPECT_GE(shared, 200);
}

TEST(FairMutex, AttemptWaitsForNobody) {
  FairMutex turns;
  const auto wins = [&turns] {
    bool won = false;
    std::thread([&] { won = FairMutex::Attempt(turns).won(); }).join();
    return won;
  };
  EXPECT_TRUE(wins());
  {
    const FairMutex::Round round(turns);
    EXPECT_FALSE(wins());
  }
  {
    const FairMutex::Visit visit(turns);
    EXPECT_FALSE(wins());
  }
  EXPECT_TRUE(wins());
}

TEST(FairMutex, RoundThatTriesWaitsForNobody) {
  FairMutex turns;
  const auto wins = [&turns] {
    bool won = false;
    std::thread([&] { won = FairMutex::Round(turns, FairMutex::Who::Tries).won(); }).join();
    return won;
  };
  EXPECT_TRUE(wins());
  {
    const FairMutex::Attempt driver(turns);
    EXPECT_FALSE(wins());
  }
  EXPECT_TRUE(wins());
}

TEST(FairMutex, DriverDoesNotKeepOutAnEngineThatWaits) {
  FairMutex turns;
  std::atomic<bool> ended{false};
  std::atomic<long> driven{0};
  std::thread driver([&] {
    while (!ended.load()) {
      const FairMutex::Attempt turn(turns);
      if (turn.won()) driven.fetch_add(1);
    }
  });
  EXPECT_TRUE(test::eventually([&] { return driven.load() > 0; }));
  const auto start = SteadyClock::now();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(FairMutex::Round(turns).won());
  EXPECT_LT(secondsSince(start), 5.0);
  const long before = driven.load();
  EXPECT_TRUE(test::eventually([&] { return driven.load() > before; })) << "and is let in again";
  ended.store(true);
  driver.join();
}

}  // namespace
}  // namespace tutti::proxy
