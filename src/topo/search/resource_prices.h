// Prices of a machine's resources as negotiation makes them. Pure.
#pragma once

#include <vector>

#include "topo/search/hops.h"
#include "topo/search/load.h"
#include "topo/search/model.h"

namespace tutti::topo {

/// GB/s, so that nothing is divided by 0 where a link carries nothing or no NIC is reached.
inline constexpr float kLeastCapacity = 1e-6f;

/// What ways cost. Each amount that ways take of a resource has a price, worked out once for all ways that take it.
class ResourcePrices {
 public:
  /// `inside`: what hops between GPUs take, in proportion to ways to the network.
  ResourcePrices(const SearchModel& model, float inside);

  void forget();
  /// Prices for one more channel on top of `congestion`, where loads are to be kept to `target` times the capacities.
  void set(const Congestion& congestion, float target);
  /// Makes what is loaded most dearer for good.
  void raiseWorst(const Congestion& congestion);

  /// At the prices that were set last; kNoWay or more if the way cannot be used.
  float priceOf(const SearchWay& way) const {
    if (!way.usable()) return kNoWay;
    float sum = taxOn(way.type);
    for (auto use = static_cast<std::size_t>(way.begin); use < static_cast<std::size_t>(way.end); ++use) {
      sum += terms_.price[static_cast<std::size_t>(termOf_[use])];
    }
    return sum;
  }
  int resourceCount() const { return static_cast<int>(model_.capacities().size()); }

 private:
  /// Of each price; the first ones are of 1 GB/s of each resource.
  struct Terms {
    std::vector<int> resource;
    std::vector<float> factor;
    std::vector<float> capacity;
    std::vector<float> history;
    std::vector<float> load;
    std::vector<float> price;
  };
  /// So that of two ways that cost about the same the shorter is taken, the more so if one needs a CPU.
  static float taxOn(PathType type) {
    return type > PathType::Pxn ? 0.02f * (static_cast<float>(type) - static_cast<float>(PathType::Pxn))
                                : 2e-5f * static_cast<float>(type);
  }
  void addTerm(int resource, float factor);
  int termOf(int resource, float factor);
  void enlist(const SearchWay& way, float part);

  const SearchModel& model_;
  Terms terms_;
  std::vector<int> next_;    ///< term of the same resource with another factor; -1: the last one
  std::vector<int> termOf_;  ///< of each use of a way
};

}  // namespace tutti::topo
