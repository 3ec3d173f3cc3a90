// Prices of a machine's resources as negotiation makes them, and of the hops and doors of a channel at these prices.
// Pure.
#pragma once

#include <cstdint>
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
  float bound = 0;  ///< GB/s; reaching it ends the work
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
  /// Cheapest first.
  std::vector<Doors> doors(bool twin, const std::vector<float>& hops) const;

  float priceOf(const SearchWay& way) const;
  /// Numbers of the NICs that may be used.
  const std::vector<int>& nets() const { return nets_; }

 private:
  std::vector<Doors> closedDoors(const std::vector<float>& hops) const;
  std::vector<Doors> railDoors(bool twin) const;
  std::vector<Doors> swappedDoors() const;
  std::vector<Doors> chainDoors() const;
  bool isAllowed(int net) const;
  float noise();

  const SearchModel& model_;
  const PackTask& task_;
  std::vector<float> prices_;
  std::vector<float> history_;
  std::vector<int> nets_;  ///< that may be used
  float tax_ = 0;          ///< on each step of a way's type
  std::uint64_t seed_ = 0x9e3779b97f4a7c15ull;
};

}  // namespace tutti
