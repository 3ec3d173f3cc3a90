// Ranks on several nodes that have a network which reduces by itself, built by hand: a World, and what kernels know of
// the network. Which ranks are on a node, which of them are heads, and how chains go, is as irregular as it may be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "device/collnet_network.h"
#include "device/collnet_view.h"
#include "device/world.h"

namespace tutti::device::test {

struct CollNetShape {
  int nodes = 2;
  int locals = 1;  ///< ranks of a node
  int heads = 1;   ///< of a node
  unsigned lanes = 1;
  std::uint32_t slotBytes = 1024;  ///< between ranks
  std::uint32_t laneBytes = 1024;  ///< most bytes of a lane in a step
  std::uint64_t firstStep = 0;     ///< where all counters start
  bool pulls = false;              ///< as WorldShape
};

class CollNetWorld {
 public:
  explicit CollNetWorld(const CollNetShape& shape);

  World& world() { return world_; }
  CollNetNetwork& network() { return network_; }
  const CollNetNetwork& network() const { return network_; }
  const CollNetShape& shape() const { return shape_; }
  int rankOf(int node, int local) const { return local * shape_.nodes + node; }
  /// Ranks of a node, from the head of the channel on.
  std::vector<int> chainOf(int node, unsigned channel) const;
  int positionOf(unsigned channel) const;

 private:
  struct Lane {
    Counter sendTail, sendHead, recvTail, recvHead, sendStep, recvStep;
  };
  struct alignas(16) Line {
    std::byte bytes[128];
  };
  /// A head's connection.
  struct Area {
    std::vector<Line> send, recv;
    CollNetWords words;
    std::vector<Lane> lanes;
  };
  struct Rank {
    CollNetView view;
    std::vector<CollNetConn> direct, chain;
    std::vector<CollNetChainPlace> places;
  };

  int railOf(unsigned channel) const { return static_cast<int>(channel) % shape_.heads; }
  int headOf(int node, int rail) const { return (shape_.locals - 1 - rail + node) % shape_.locals; }
  std::vector<unsigned> channelsOf(int rail) const;
  std::vector<CollNetConn> connect(unsigned lanes);
  void build(int node, int local);
  void place(Rank& rank, int node, int self);

  CollNetShape shape_;
  World world_;
  CollNetNetwork network_;
  std::list<Area> areas_;
  std::vector<std::int32_t> railRanks_;
  std::vector<Rank> ranks_;  ///< by rank
};

}  // namespace tutti::device::test
