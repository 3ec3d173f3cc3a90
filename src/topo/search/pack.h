// Packs channels into a machine: as many as wanted, so that the most loaded resource is loaded least. Pure.
//
// The method is that of routing wires on a chip by negotiation: every resource has a price that grows steeply with its
// load, every channel takes the cheapest order of GPUs at these prices, and channels are taken out and put back until
// the bound is reached or the work is used up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "topo/search/load.h"
#include "topo/search/model.h"
#include "topo/search/price.h"
#include "topo/search/route.h"

namespace tutti::topo {

struct Packing {
  std::vector<DenseChannel> channels;
  float total = 0;   ///< channels x bandwidth, GB/s
  float length = 0;  ///< types of a channel's ways in sum, on average

  bool reaches(float bound) const { return total >= bound * 0.9995f; }
  /// What it is worth: a channel costs threads and buffers, so one of less than 25 GB/s has to add a little to the sum;
  /// and of two packings that carry the same, the one with the shorter ways is better.
  float worth() const { return worthOf(static_cast<float>(channels.size()), total, length); }
  static float worthOf(float channels, float total, float length) {
    constexpr float kFullChannel = 25;
    constexpr float kCost = 0.004f;
    const float small = std::max(channels - total / kFullChannel, 0.0f);
    return total / (1 + kCost * small) * (1 - 1e-6f * length);
  }
};

/// Numbers of channels by what each is worth (valueOf[count], 0 beyond its end), the largest first. Values count in
/// steps of 0.1 to 0.2 %; within a step the order stays.
std::vector<int> sortedByWorth(std::vector<int> counts, const std::vector<float>& valueOf);

class Packer {
 public:
  Packer(const SearchModel& model, const PackTask& task);
  /// The best packing found; no channels where there is none.
  Packing run();

 private:
  void empty();
  bool put(int at, int wanted);
  void lift(int at);
  bool fill(int wanted);
  void negotiate(int wanted, bool twin);
  bool sweep(int wanted);
  void consider();
  std::int64_t steps() const { return router_.steps() + prices_.steps() * kStepsOfPrice; }
  /// No packing of at least so many channels is better, or the work is used up.
  bool isDone(int wanted) const {
    const bool isBest = best_.reaches(task_.bound) && std::ssize(best_.channels) <= wanted;
    return isBest || steps() > budget_;
  }
  std::vector<int> promisingCounts(const std::vector<float>& greedy) const;
  const std::vector<int>& hint(int at) const;
  void place(int at, const ChannelEnds& ends);
  /// Channels that are put and taken out together.
  int together() const { return twin_ ? 2 : 1; }

  static constexpr int kStepsOfPrice = 6;

  const SearchModel& model_;
  PackTask task_;
  PriceList prices_;
  Router router_;
  Congestion congestion_;
  std::vector<DenseChannel> channels_;
  Packing best_;
  bool twin_ = false;  ///< each channel is followed by its reverse
  bool noisy_ = false;
  std::int64_t budget_ = 0;
  /// Of the channel that is being put.
  struct Next {
    RoutePrices prices;
    RouteResult route;
    std::vector<int> straight;  ///< the machine's order
  };
  Next next_;
};

}  // namespace tutti::topo
