#include "topo/search/hops.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tutti::topo {

namespace {

struct Second {
  int gpu = -1;
  float price = kNoWay;
};

/// Two GPUs that being second costs least for if `first` is first: one of them is not last. No GPU: it costs nothing.
std::array<Second, 2> cheapestSeconds(const RoutePrices& prices, int first) {
  if (prices.second.empty()) return {Second{-1, 0}, Second{-1, 0}};
  std::array<Second, 2> least;
  for (int g = 0; g < prices.n; ++g) {
    const float price = prices.second[static_cast<std::size_t>(g)];
    if (g == first || price >= least[1].price) continue;
    least[1] = {g, price};
    if (price < least[0].price) std::swap(least[0], least[1]);
  }
  if (prices.n == 2) least[1] = least[0];  // the second is the last
  return least;
}

}  // namespace

void HopBound::set(const RoutePrices& prices) {
  const auto n = static_cast<std::size_t>(prices.n);
  leave_.resize(n);
  enter_.assign(n, kNoWay);
  for (std::size_t a = 0; a < n; ++a) {
    const float* hop = &prices.hop[a * n];
    float leave = kNoWay;
    for (std::size_t b = 0; b < a; ++b) leave = std::min(leave, hop[b]);
    for (std::size_t b = a + 1; b < n; ++b) leave = std::min(leave, hop[b]);
    leave_[a] = leave;
    for (std::size_t b = 0; b < a; ++b) enter_[b] = std::min(enter_[b], hop[b] - leave);
    for (std::size_t b = a + 1; b < n; ++b) enter_[b] = std::min(enter_[b], hop[b] - leave);
  }
  sum_ = 0;
  for (std::size_t a = 0; a < n; ++a) sum_ += leave_[a] + enter_[a];
}

BoundEnds HopBound::bestEnds(const RoutePrices& prices) const {
  const auto at = [](int gpu) { return static_cast<std::size_t>(gpu); };
  BoundEnds best;
  for (int first = 0; first < prices.n; ++first) {
    const float start = sum_ + (prices.start[at(first)] - enter_[at(first)]);
    const std::array<Second, 2> seconds = cheapestSeconds(prices, first);
    for (int last = 0; last < prices.n; ++last) {
      if (first == last) continue;
      const float second = seconds[last == seconds[0].gpu ? 1 : 0].price;
      const float price = start + prices.end[at(last)] - leave_[at(last)] + second;
      const bool closesNearer = prices.closed && price == best.price && last > best.last;
      if (price < best.price || closesNearer) best = {first, last, price};
    }
  }
  return best;
}

}  // namespace tutti::topo
