// The cheapest order of all GPUs for given prices of hops and of ends: exact for few GPUs, a beam for many. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace tutti {

/// What does not exist costs this; sums of it stay finite.
inline constexpr float kNoWay = 1e15f;

/// Prices of one channel over n GPUs.
struct RoutePrices {
  int n = 0;
  std::vector<float> hop;     ///< from * n + to
  std::vector<float> start;   ///< of being first
  std::vector<float> second;  ///< of being second; empty: nothing
  std::vector<float> end;     ///< of being last
  bool closed = false;        ///< a cycle: the last one goes back to the first, which is GPU 0

  float hopPrice(int from, int to) const {
    return hop[static_cast<std::size_t>(from) * static_cast<std::size_t>(n) + static_cast<std::size_t>(to)];
  }
};

struct RouteResult {
  std::vector<int> order;  ///< empty: none
  float price = kNoWay;
};

/// Finds orders; keeps its memory between calls. One thread at a time.
class Router {
 public:
  /// `hint`: an order to start from where the search is not exact (the machine's own, or an earlier channel's).
  RouteResult find(const RoutePrices& prices, const std::vector<int>& hint);
  /// Steps taken so far: what bounds the search's time on any computer alike.
  std::int64_t steps() const { return steps_; }

  static constexpr int kExactGpus = 12;

 private:
  RouteResult withBestEnds(const RoutePrices& prices, const std::vector<int>& hint);
  template <int kLanes>
  RouteResult exact(const RoutePrices& prices);
  RouteResult cheapestEnding(const RoutePrices& prices, int lanes) const;
  RouteResult beam(const RoutePrices& prices, const std::vector<int>& hint);
  RouteResult between(const RoutePrices& prices, int first, int last);

  std::int64_t steps_ = 0;
  std::vector<float> best_;
  std::vector<float> hops_;
};

/// What an order costs; kNoWay or more if it takes a way that is not there.
float routePrice(const RoutePrices& prices, const std::vector<int>& order);

/// Makes `order` cheaper by moving runs of up to three GPUs elsewhere, its ends staying; returns the steps taken.
std::int64_t improveOrder(const RoutePrices& prices, std::vector<int>& order);

}  // namespace tutti
