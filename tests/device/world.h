// Several ranks' views built by hand in plain memory, so that kernels can be run without a communicator.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "device/policy.h"
#include "device/work.h"

namespace tutti::device::test {

struct WorldShape {
  int nRanks = 2;
  unsigned nChannels = 1;
  std::uint32_t slotBytes = 1024;
  std::uint64_t firstStep = 0;  ///< where all counters start
};

/// Every pair of ranks is connected on every channel; the ring is 0, 1, 2, ….
class World {
 public:
  explicit World(const WorldShape& shape) : shape_(shape), ranks_(shape.nRanks) {
    for (int r = 0; r < shape.nRanks; ++r) buildRank(r);
    for (unsigned c = 0; c < shape.nChannels; ++c) {
      for (int from = 0; from < shape.nRanks; ++from) {
        for (int to = 0; to < shape.nRanks; ++to) {
          for (int kind = 0; kind < kConnKinds; ++kind) connect(c, from, to, kind);
        }
      }
    }
  }

  const WorldShape& shape() const { return shape_; }
  const CommView* comm(int rank) const { return &ranks_[rank].view; }
  std::uint32_t* abortWord() { return &abortWord_; }

 private:
  struct Rank {
    CommView view;
    std::vector<ChannelView> channels;
    std::vector<std::vector<ConnView>> send[kConnKinds], recv[kConnKinds];
    std::vector<std::int32_t> ring;
  };
  using Counters = std::array<std::uint64_t, kProtocols * kCounterStride>;
  struct Connection {
    std::vector<std::uint64_t> slots;
    alignas(64) Counters tail, head, sendStep, recvStep;
  };

  void buildRank(int r) {
    Rank& rank = ranks_[r];
    const int n = shape_.nRanks;
    for (int i = 0; i < n; ++i) rank.ring.push_back((r + i) % n);
    for (int kind = 0; kind < kConnKinds; ++kind) {
      rank.send[kind].assign(shape_.nChannels, std::vector<ConnView>(n));
      rank.recv[kind].assign(shape_.nChannels, std::vector<ConnView>(n));
    }
    for (unsigned c = 0; c < shape_.nChannels; ++c) {
      rank.channels.push_back(
          {.send = {rank.send[0][c].data(), rank.send[1][c].data()},
           .recv = {rank.recv[0][c].data(), rank.recv[1][c].data()},
           .ringRanks = rank.ring.data(),
           .ringPrev = (r + n - 1) % n,
           .ringNext = (r + 1) % n,
           .tree = {-1, {-1, -1, -1}}});
    }
    rank.view = {rank.channels.data(), &abortWord_, r, n, shape_.nChannels, 0};
  }

  void connect(unsigned channel, int from, int to, int kind) {
    Connection& link = links_.emplace_back();
    link.slots.resize(shape_.slotBytes * kSteps / 8);
    for (Counters* counters : {&link.tail, &link.head, &link.sendStep, &link.recvStep}) counters->fill(shape_.firstStep);
    ConnView view{};
    view.slots[static_cast<int>(Protocol::Simple)] = reinterpret_cast<std::byte*>(link.slots.data());
    view.slotBytes[static_cast<int>(Protocol::Simple)] = shape_.slotBytes;
    view.tail = link.tail.data();
    view.head = link.head.data();
    view.step = link.sendStep.data();
    ranks_[from].send[kind][channel][to] = view;
    view.step = link.recvStep.data();
    ranks_[to].recv[kind][channel][from] = view;
  }

  WorldShape shape_;
  std::uint32_t abortWord_ = 0;
  std::vector<Rank> ranks_;
  std::list<Connection> links_;
};

}  // namespace tutti::device::test
