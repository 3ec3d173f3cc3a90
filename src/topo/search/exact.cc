#include "topo/search/exact.h"

#include <algorithm>
#include <bit>

#include "topo/search/lanes.h"

namespace tutti::topo {

namespace {

bool isSingle(unsigned set) {
  return (set & (set - 1)) == 0;
}

/// A row of the table.
template <int kFours>
struct Lanes {
  Four four[kFours];

  void load(const float* from) {
    for (std::size_t i = 0; i < kFours; ++i) four[i] = loadFour(from + i * kLanesOfFour);
  }
  void store(float* to) const {
    for (std::size_t i = 0; i < kFours; ++i) storeFour(to + i * kLanesOfFour, four[i]);
  }
  /// With what it costs to come by `hop` at most.
  void lower(float here, const Lanes& hop) {
    for (int i = 0; i < kFours; ++i) {
      const Four price = hop.four[i] + here;
      four[i] = price < four[i] ? price : four[i];
    }
  }
};

}  // namespace

void ExactOrder::setHops(const RoutePrices& prices) {
  lanes_ = (prices.n + 3) / 4 * 4;
  const auto n = static_cast<std::size_t>(prices.n);
  const auto lanes = static_cast<std::size_t>(lanes_);
  hops_.assign(n * lanes, kNoWay);
  for (std::size_t a = 0; a < n; ++a) std::copy_n(&prices.hop[a * n], n, &hops_[a * lanes]);
}

void ExactOrder::find(const RoutePrices& prices, RouteResult& result) {
  const std::size_t size = static_cast<std::size_t>(lanes_) << prices.n;
  if (table_.size() < size) table_.resize(size);
  fillSingles(prices);
  if (lanes_ == 4) {
    fill<1>(prices);
  } else if (lanes_ == 8) {
    fill<2>(prices);
  } else {
    fill<3>(prices);
  }
  readOff(prices, result);
}

/// Sets of one GPU.
void ExactOrder::fillSingles(const RoutePrices& prices) {
  const auto lanes = static_cast<std::size_t>(lanes_);
  for (int g = 0; g < prices.n; ++g) {
    const float start = prices.closed && g > 0 ? kNoWay : prices.start[static_cast<std::size_t>(g)];
    const float* hop = &hops_[static_cast<std::size_t>(g) * lanes];
    float* row = &table_[lanes << g];
    for (std::size_t lane = 0; lane < lanes; ++lane) row[lane] = std::min(kNoWay, start + hop[lane]);
    for (std::size_t lane = 0; lane < prices.second.size(); ++lane) row[lane] += prices.second[lane];
  }
}

template <int kFours>
void ExactOrder::fill(const RoutePrices& prices) {
  const unsigned full = (1u << prices.n) - 1;
  for (unsigned set = 0; set < full; set += 4) fillFour<kFours>(set);
}

/// A set without the first two GPUs, and the same with either and with both.
template <int kFours>
void ExactOrder::fillFour(unsigned set) {
  constexpr std::size_t kLanes = std::size_t{kFours} * 4;
  Lanes<kFours> rows[4];
  Lanes<kFours> hop;
  for (Lanes<kFours>& row : rows) {
    for (Four& four : row.four) four = allFour(kNoWay);
  }
  for (unsigned lasts = set; lasts != 0; lasts &= lasts - 1) {
    const auto last = static_cast<unsigned>(std::countr_zero(lasts));
    const float* here = &table_[(set & ~(1u << last)) * kLanes + last];
    hop.load(&hops_[last * kLanes]);
    for (std::size_t i = 0; i < 4; ++i) rows[i].lower(here[i * kLanes], hop);
  }
  Lanes<kFours> second;
  hop.load(&hops_[0]);
  second.load(&hops_[kLanes]);
  if (isSingle(set)) rows[0].load(&table_[set * kLanes]);
  if (set == 0) {
    rows[1].load(&table_[kLanes]);
    rows[2].load(&table_[2 * kLanes]);
  } else {
    rows[1].lower(rows[0].four[0][0], hop);
    rows[2].lower(rows[0].four[0][1], second);
  }
  rows[3].lower(rows[2].four[0][0], hop);
  rows[3].lower(rows[1].four[0][1], second);
  for (std::size_t i = 0; i < 4; ++i) rows[i].store(&table_[(set + i) * kLanes]);
}

/// The cheapest way to have visited a set and to stand at one of it.
float ExactOrder::arrival(const RoutePrices& prices, unsigned set, int last) const {
  const unsigned before = set & ~(1u << last);
  if (before == 0) return prices.closed && last > 0 ? kNoWay : prices.start[static_cast<std::size_t>(last)];
  return table_[before * static_cast<std::size_t>(lanes_) + static_cast<std::size_t>(last)];
}

/// Reads the order off the table, from its end.
void ExactOrder::readOff(const RoutePrices& prices, RouteResult& result) const {
  const int n = prices.n;
  unsigned set = (1u << n) - 1;
  int end = -1;
  for (int g = 0; g < n; ++g) {
    const float price = arrival(prices, set, g) + prices.end[static_cast<std::size_t>(g)];
    if (price >= result.price) continue;
    result.price = price;
    end = g;
  }
  if (end < 0) return;
  result.order.assign(static_cast<std::size_t>(n), end);
  for (int place = n - 2; place >= 0; --place) {
    const int to = result.order[static_cast<std::size_t>(place) + 1];
    set &= ~(1u << to);
    float least = 2 * kNoWay;
    for (unsigned rest = set; rest != 0; rest &= rest - 1) {
      const int from = std::countr_zero(rest);
      const float price = arrival(prices, set, from) + prices.hopPrice(from, to);
      if (price >= least) continue;
      least = price;
      result.order[static_cast<std::size_t>(place)] = from;
    }
  }
}

}  // namespace tutti::topo
