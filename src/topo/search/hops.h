// Prices of a channel's hops and ends, and what no order of GPUs costs less than by the prices of single hops. Pure.
#pragma once

#include <vector>

namespace tutti::topo {

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

/// The ends of an order, with what no order between them costs less than.
struct BoundEnds {
  int first = -1;
  int last = -1;
  float price = kNoWay;
};

/// Each GPU but the last is left at least at its lowest price, and each but the first entered at least at what is then
/// left of its lowest price. Keeps its memory between calls.
class HopBound {
 public:
  /// For the hops of these prices.
  void set(const RoutePrices& prices);
  /// The ends with the lowest bound, for the ends' prices and the same hops. Of cycles that cost the same the one that
  /// ends just before it begins, so that it goes round once.
  BoundEnds bestEnds(const RoutePrices& prices) const;
  /// Whether rounding aside no order between such ends costs less than that.
  bool isAbove(const BoundEnds& ends, float price) const { return ends.price > price + (price + sum_) * kRounding; }

 private:
  static constexpr float kRounding = 1e-5f;  ///< more than that of all prices added up

  std::vector<float> leave_;
  std::vector<float> enter_;
  float sum_ = 0;
};

}  // namespace tutti::topo
