// Prices of the hops and ends of one more channel, at what the machine's resources cost. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "topo/search/load.h"
#include "topo/search/model.h"
#include "topo/search/resource_prices.h"
#include "topo/search/route.h"

namespace tutti::topo {

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

  bool operator==(const PackTask&) const = default;
};

/// Ends of a channel: NICs (-1: one machine), with what being first, second or last costs.
struct ChannelEnds {
  int in = -1;
  int out = -1;
  std::vector<float> start;
  std::vector<float> second;
  std::vector<float> end;
  float least = 0;  ///< no ends cost less

  /// For ends that differ by GPU: NIC in at each first GPU, NIC out at each last.
  std::vector<int> inOf;
  std::vector<int> outOf;
};

/// Keeps its memory between calls.
class PriceList {
 public:
  PriceList(const SearchModel& model, const PackTask& task);

  void forget() { prices_.forget(); }
  /// Prices for one more channel on top of `congestion`, of `wanted` in the end.
  void set(const Congestion& congestion, int wanted);
  void raiseWorst(const Congestion& congestion) { prices_.raiseWorst(congestion); }

  /// `twin`: of a channel and its reverse together. `noisy`: changed a little, otherwise each time.
  void hops(bool twin, bool noisy, std::vector<float>& prices);
  /// The cheapest `atMost`, cheapest first; they hold until the next call.
  std::span<const ChannelEnds> ends(bool twin, const std::vector<float>& hops, int atMost);
  /// Prices that a packing needed so far, as a measure of work; those that were known already count, too.
  std::int64_t steps() const { return steps_; }

  float priceOf(const SearchWay& way) const { return prices_.priceOf(way); }
  /// Numbers of the NICs that may be used.
  const std::vector<int>& nets() const { return nets_; }

 private:
  /// A NIC's ways to and from all GPUs: their prices, and how many there are.
  struct NetPrices {
    std::vector<float> entries;
    std::vector<float> exits;
    int entryCount = 0;
    int exitCount = 0;
    float least = kNoWay;     ///< of a way in and a way out of the same GPU
    float leastIn = kNoWay;   ///< of a ring's start
    float leastOut = kNoWay;  ///< of a ring's end
  };
  NetPrices& priced(int net) { return netPrices_[static_cast<std::size_t>(net)]; }
  void countWays();
  void findPlanes();
  void setNets(bool twin);
  ChannelEnds& nextDoors(int in, int out);
  void closedDoors(const std::vector<float>& hops);
  void railDoors(bool twin, int atMost);
  void swappedDoors();
  void swappedDoors(const std::vector<int>& nets);
  void chainDoors(int atMost);
  bool isAllowed(int net) const;
  float noise();

  const SearchModel& model_;
  const PackTask& task_;
  ResourcePrices prices_;
  std::vector<int> nets_;                   ///< that may be used
  std::vector<std::pair<int, int>> rails_;  ///< NICs that a channel may come in and leave by, staying on its rail
  std::vector<std::vector<int>> planes_;    ///< NICs of each plane, and those that go with all planes
  std::vector<NetPrices> netPrices_;        ///< by NIC
  std::vector<ChannelEnds> ends_;           ///< more than are in use, for their memory
  std::size_t doorCount_ = 0;
  int hopCount_ = 0;  ///< that are possible
  std::int64_t steps_ = 0;
  std::uint64_t seed_ = 0x9e3779b97f4a7c15ull;
};

}  // namespace tutti::topo
