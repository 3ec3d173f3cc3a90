// Prices of a machine's resources as negotiation makes them, and of the hops and doors of a channel at these prices.
// Pure.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "topo/search_load.h"
#include "topo/search_model.h"
#include "topo/search_route.h"

namespace tutti {

/// What channels are to be packed.
struct PackTask {
  Pattern pattern = Pattern::Ring;
  bool swapNets = false;        ///< rings: channels in pairs, the second with the NICs of the first swapped
  bool collectiveOnly = false;  ///< use NICs with CollNet alone
  int minChannels = 1;
  int maxChannels = 32;
  float inside = 1;  ///< bandwidth wanted inside, in proportion to that to the network
  float bound = 0;   ///< GB/s; reaching it ends the work
  float effort = 1;  ///< part of the usual work that this is worth
};

/// Ends of a channel: NICs (-1: one machine), with what being first, second or last costs.
struct Doors {
  int in = -1;
  int out = -1;
  std::vector<float> start;
  std::vector<float> second;
  std::vector<float> end;
  float least = 0;  ///< no ends cost less

  /// For doors that differ by GPU: NIC in at each first GPU, NIC out at each last.
  std::vector<int> inOf;
  std::vector<int> outOf;
};

class PriceList {
 public:
  PriceList(const SearchModel& model, const PackTask& task);

  void forget();
  /// Prices for one more channel on top of `congestion`, of `wanted` in the end.
  void set(const Congestion& congestion, int wanted);
  /// Makes what is loaded most dearer for good.
  void raiseWorst(const Congestion& congestion);

  /// `twin`: of a channel and its reverse together. `noisy`: changed a little, otherwise each time.
  std::vector<float> hops(bool twin, bool noisy);
  /// The cheapest `atMost`, cheapest first.
  std::vector<Doors> doors(bool twin, const std::vector<float>& hops, int atMost) const;
  /// Prices worked out so far, as a measure of work.
  std::int64_t steps() const { return steps_; }

  /// `part`: of the channel's bandwidth to the network.
  float priceOf(const SearchWay& way, float part = 1) const;
  /// Numbers of the NICs that may be used.
  const std::vector<int>& nets() const { return nets_; }

 private:
  std::vector<Doors> closedDoors(const std::vector<float>& hops) const;
  std::vector<Doors> railDoors(bool twin, int atMost) const;
  std::vector<int> onePerPlane() const;
  std::vector<Doors> swappedDoors() const;
  std::vector<Doors> chainDoors(int atMost) const;
  std::vector<std::size_t> cheapest(const std::vector<float>& leasts, int atMost) const;
  float priceOf(const ResourceUse& use) const;
  bool isAllowed(int net) const;
  float noise();

  const SearchModel& model_;
  const PackTask& task_;
  std::vector<float> prices_;
  std::vector<float> history_;
  std::vector<float> loads_;
  std::vector<int> nets_;                   ///< that may be used
  std::vector<std::pair<int, int>> rails_;  ///< NICs that a channel may come in and leave by, staying on its rail
  mutable std::int64_t steps_ = 0;
  float target_ = 1;  ///< load in proportion to capacity that is to be kept to
  std::uint64_t seed_ = 0x9e3779b97f4a7c15ull;
};

}  // namespace tutti
