// The cheapest order of few GPUs, exactly. Pure.
#pragma once

#include <vector>

#include "topo/search/hops.h"

namespace tutti::topo {

struct RouteResult {
  std::vector<int> order;  ///< empty: none
  float price = kNoWay;
};

/// The cheapest way to have visited a set of GPUs and to go on to another one, for all sets (Held and Karp). Keeps its
/// memory between calls.
class ExactOrder {
 public:
  static constexpr int kMostGpus = 12;

  /// For the hops of these prices.
  void setHops(const RoutePrices& prices);
  /// For ends and the hops that were set; `result` is empty before. For 2 to kMostGpus GPUs.
  void find(const RoutePrices& prices, RouteResult& result);

 private:
  template <int kFours>
  void fill(const RoutePrices& prices);
  template <int kFours>
  void fillFour(unsigned set);
  void fillSingles(const RoutePrices& prices);
  void readOff(const RoutePrices& prices, RouteResult& result) const;
  float arrival(const RoutePrices& prices, unsigned set, int last) const;

  int lanes_ = 0;             ///< floats of a row
  std::vector<float> table_;  ///< a row for each set: the price of having visited it and then a GPU, for all GPUs
  std::vector<float> hops_;   ///< a row for each GPU
};

}  // namespace tutti::topo
