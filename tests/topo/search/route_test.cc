// The cheapest orders, checked against all orders there are.
#include "topo/search/route.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace tutti::topo {
namespace {

/// Prices drawn by lot, always the same for a seed.
RoutePrices drawPrices(int n, std::uint64_t seed, bool closed) {
  const auto draw = [&seed] {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(1 + (seed >> 33) % 100);
  };
  RoutePrices prices{.n = n, .closed = closed};
  for (int i = 0; i < n * n; ++i) prices.hop.push_back(draw());
  for (int g = 0; g < n; ++g) {
    prices.start.push_back(closed && g > 0 ? kNoWay : draw());
    prices.end.push_back(closed ? prices.hopPrice(g, 0) : draw());
    if (!closed) prices.second.push_back(draw());
  }
  return prices;
}

std::vector<int> firstOrder(int n) {
  std::vector<int> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

float cheapestOfAll(const RoutePrices& prices) {
  std::vector<int> order = firstOrder(prices.n);
  float least = kNoWay;
  do {
    least = std::min(least, routePrice(prices, order));
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

bool isOrderOfAll(std::vector<int> order, int n) {
  std::sort(order.begin(), order.end());
  return order == firstOrder(n);
}

TEST(Router, FindsTheCheapestOfAllOrdersOfFewGpus) {
  Router router;
  for (int n = 2; n <= 8; ++n) {
    for (std::uint64_t seed = 0; seed < (n < 8 ? 20 : 2); ++seed) {
      const RoutePrices prices = drawPrices(n, seed, seed % 2 == 0);
      const RouteResult found = router.find(prices, firstOrder(n));
      ASSERT_TRUE(isOrderOfAll(found.order, n));
      EXPECT_FLOAT_EQ(routePrice(prices, found.order), found.price);
      EXPECT_FLOAT_EQ(found.price, cheapestOfAll(prices)) << n << " GPUs, seed " << seed;
    }
  }
}

TEST(Router, FindsTheSameWithOtherEndsWhoseHopsItKnows) {
  Router router;
  for (const int n : {2, 4, 7, 10, 14}) {
    RoutePrices prices = drawPrices(n, 1, false);
    router.find(prices, firstOrder(n));
    for (std::uint64_t seed = 2; seed < 6; ++seed) {
      const RoutePrices other = drawPrices(n, seed, false);
      prices.start = other.start;
      prices.second = other.second;
      prices.end = other.end;
      const RouteResult again = router.find(prices, firstOrder(n), {.sameHops = true});
      const RouteResult anew = Router().find(prices, firstOrder(n));
      EXPECT_EQ(again.order, anew.order);
      EXPECT_EQ(again.price, anew.price);
    }
  }
}

TEST(Router, FindsWhatCostsLessThanTheLimit) {
  Router router;
  for (const int n : {3, 6, 9, 12}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const RoutePrices prices = drawPrices(n, seed, seed % 2 == 0);
      const RouteResult free = router.find(prices, firstOrder(n));
      const RouteResult below = router.find(prices, firstOrder(n), {.limit = free.price * 1.01f});
      EXPECT_EQ(below.order, free.order);
      EXPECT_EQ(below.price, free.price);
      EXPECT_GE(router.find(prices, firstOrder(n), {.limit = free.price / 4}).price, free.price / 4);
    }
  }
}

TEST(Router, TakesAsManyStepsWhateverTheLimit) {
  const RoutePrices prices = drawPrices(8, 1, false);
  Router free;
  Router limited;
  free.find(prices, firstOrder(8));
  EXPECT_TRUE(limited.find(prices, firstOrder(8), {.limit = 1}).order.empty());
  EXPECT_EQ(limited.steps(), free.steps());
}

TEST(Router, AgreesOnBothSidesOfEightGpus) {
  Router router;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    RoutePrices nine = drawPrices(9, seed, false);
    // The ninth GPU can only be the last and costs nothing there: what is left are eight.
    RoutePrices eight{.n = 8};
    for (int a = 0; a < 9; ++a) {
      nine.hop[static_cast<std::size_t>(a * 9 + 8)] = 0;
      nine.end[static_cast<std::size_t>(a)] = a == 8 ? 0 : kNoWay;
      for (int b = 0; a < 8 && b < 8; ++b) eight.hop.push_back(nine.hopPrice(a, b));
    }
    eight.start.assign(nine.start.begin(), nine.start.begin() + 8);
    eight.second.assign(nine.second.begin(), nine.second.begin() + 8);
    eight.end.assign(8, 0);
    nine.start[8] = kNoWay;
    EXPECT_FLOAT_EQ(router.find(nine, firstOrder(9)).price, router.find(eight, firstOrder(8)).price);
  }
}

TEST(Router, FollowsACircleOfManyGpus) {
  constexpr int kGpus = 20;
  RoutePrices prices{.n = kGpus, .hop = std::vector<float>(kGpus * kGpus, 50), .closed = true};
  prices.start.assign(kGpus, kNoWay);
  prices.start[0] = 0;
  for (int g = 0; g < kGpus; ++g) prices.hop[static_cast<std::size_t>(g * kGpus + (g + 7) % kGpus)] = 1;
  for (int g = 0; g < kGpus; ++g) prices.end.push_back(prices.hopPrice(g, 0));
  const RouteResult found = Router().find(prices, firstOrder(kGpus));
  ASSERT_TRUE(isOrderOfAll(found.order, kGpus));
  EXPECT_FLOAT_EQ(found.price, kGpus);
}

TEST(Router, FollowsTheHintRoundWhereAllCyclesCostTheSame) {
  constexpr int kGpus = 8;
  RoutePrices prices{.n = kGpus, .hop = std::vector<float>(kGpus * kGpus, 1), .closed = true};
  prices.start.assign(kGpus, kNoWay);
  prices.start[0] = 0;
  prices.end.assign(kGpus, 1);
  EXPECT_EQ(Router().find(prices, firstOrder(kGpus)).order, firstOrder(kGpus));
}

TEST(Router, HasNoOrderWhereAGpuCannotBeReached) {
  RoutePrices prices = drawPrices(5, 1, false);
  for (int a = 0; a < 5; ++a) {
    prices.hop[static_cast<std::size_t>(a * 5 + 3)] = kNoWay;
    prices.hop[static_cast<std::size_t>(3 * 5 + a)] = kNoWay;
  }
  EXPECT_TRUE(Router().find(prices, firstOrder(5)).order.empty());
}

TEST(Router, TakesOneGpuAsItIs) {
  const RoutePrices prices{.n = 1, .hop = {0}, .start = {2}, .end = {3}};
  const RouteResult found = Router().find(prices, {0});
  EXPECT_EQ(found.order, std::vector<int>{0});
  EXPECT_FLOAT_EQ(found.price, 5);
}

}  // namespace
}  // namespace tutti::topo
