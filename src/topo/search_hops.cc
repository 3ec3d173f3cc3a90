#include "topo/search_hops.h"

#include <algorithm>
#include <array>

namespace tutti {

namespace {

/// The least that being second costs, for any two GPUs at the ends: one of the three cheapest is at neither end.
class CheapestSecond {
 public:
  explicit CheapestSecond(const RoutePrices& prices) : few_(prices.n == 2) {
    if (prices.second.empty()) return;
    for (int g = 0; g < prices.n; ++g) take({g, prices.second[static_cast<std::size_t>(g)]});
  }
  float between(int first, int last) const {
    if (least_[0].gpu < 0) return 0;
    for (const Second& second : least_) {
      const bool isFree = few_ ? second.gpu == last : second.gpu != first && second.gpu != last;
      if (isFree) return second.price;
    }
    return kNoWay;
  }

 private:
  struct Second {
    int gpu = -1;
    float price = kNoWay;
  };
  void take(Second second) {
    for (Second& least : least_) {
      if (least.gpu < 0 || second.price < least.price) std::swap(least, second);
      if (second.gpu < 0) return;
    }
  }

  bool few_;
  std::array<Second, 3> least_;
};

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
  const CheapestSecond second(prices);
  BoundEnds best;
  for (int first = 0; first < prices.n; ++first) {
    const float start = sum_ + (prices.start[at(first)] - enter_[at(first)]);
    for (int last = 0; last < prices.n; ++last) {
      if (first == last) continue;
      const float price = start + prices.end[at(last)] - leave_[at(last)] + second.between(first, last);
      const bool closesNearer = prices.closed && price == best.price && last > best.last;
      if (price < best.price || closesNearer) best = {first, last, price};
    }
  }
  return best;
}

}  // namespace tutti
