#include "proxy/turns.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/clock.h"
#include "proxy/fakes.h"

namespace tutti {
namespace {

TEST(Turns, VisitorIsServedBetweenRoundsOfABusyEngine) {
  Turns turns;
  std::atomic<bool> ended{false};
  std::atomic<long> rounds{0};
  std::thread engine([&] {
    while (!ended.load()) {
      const Turns::Round round(turns);
      rounds.fetch_add(1);
    }
  });
  EXPECT_TRUE(test::eventually([&] { return rounds.load() > 0; }));
  constexpr int kVisits = 200;
  const auto start = SteadyClock::now();
  for (int i = 0; i < kVisits; ++i) const Turns::Visit visit(turns);
  EXPECT_LT(secondsSince(start), 5.0);
  ended.store(true);
  engine.join();
}

TEST(Turns, StormOfVisitorsDoesNotKeepTheEngineOut) {
  Turns turns;
  int shared = 0;  // under the turns
  std::atomic<bool> ended{false};
  std::vector<std::thread> visitors;
  for (int i = 0; i < 3; ++i) {
    visitors.emplace_back([&] {
      while (!ended.load()) {
        const Turns::Visit visit(turns);
        ++shared;
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    const Turns::Round round(turns);
    ++shared;
  }
  ended.store(true);
  for (auto& visitor : visitors) visitor.join();
  EXPECT_GE(shared, 200);
}

TEST(Turns, AttemptWaitsForNobody) {
  Turns turns;
  const auto wins = [&turns] {
    bool won = false;
    std::thread([&] { won = Turns::Attempt(turns).won(); }).join();
    return won;
  };
  EXPECT_TRUE(wins());
  {
    const Turns::Round round(turns);
    EXPECT_FALSE(wins());
  }
  {
    const Turns::Visit visit(turns);
    EXPECT_FALSE(wins());
  }
  EXPECT_TRUE(wins());
}

}  // namespace
}  // namespace tutti
