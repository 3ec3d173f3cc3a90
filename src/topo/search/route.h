// The cheapest order of all GPUs for given prices of hops and of ends: exact for few GPUs, a beam for many. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "topo/search/exact.h"
#include "topo/search/hops.h"

namespace tutti::topo {

/// What is known beforehand of an order that is looked for.
struct RouteWish {
  bool sameHops = false;  ///< the hops' prices are those of the call before
  float limit = kNoWay;   ///< an order that does not cost less need not be found
};

/// Finds orders; keeps its memory between calls. One thread at a time.
class Router {
 public:
  /// `hint`: an order to start from where the search is not exact (the machine's own, or an earlier channel's). What is
  /// returned holds until the next call.
  const RouteResult& find(const RoutePrices& prices, const std::vector<int>& hint, const RouteWish& wish = {});
  /// Steps taken so far: what bounds the search's time on any computer alike.
  std::int64_t steps() const { return steps_; }

  static constexpr int kExactGpus = ExactOrder::kMostGpus;

 private:
  bool tryEnds(const RoutePrices& prices, const std::vector<int>& hint, const BoundEnds& ends);
  RouteResult beam(const RoutePrices& prices, const std::vector<int>& hint);
  RouteResult between(const RoutePrices& prices, int first, int last);

  std::int64_t steps_ = 0;
  RouteResult found_;
  HopBound bound_;
  ExactOrder exact_;
  bool hasHops_ = false;  ///< exact_ has those of the last call
};

/// What an order costs; kNoWay or more if it takes a way that is not there.
float routePrice(const RoutePrices& prices, const std::vector<int>& order);

/// Makes `order` cheaper by moving runs of up to three GPUs elsewhere, its ends staying; returns the steps taken.
std::int64_t improveOrder(const RoutePrices& prices, std::vector<int>& order);

}  // namespace tutti::topo
