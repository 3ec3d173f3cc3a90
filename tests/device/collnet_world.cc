#include "device/collnet_world.h"

#include <algorithm>

namespace tutti::device::test {

CollNetWorld::CollNetWorld(const CollNetShape& shape)
    : shape_(shape),
      world_({.nRanks = shape.nodes * shape.locals,
              .nChannels = shape.lanes,
              .slotBytes = shape.slotBytes,
              .firstStep = shape.firstStep,
              .pulls = shape.pulls}),
      ranks_(static_cast<std::size_t>(shape.nodes) * shape.locals) {
  for (int node = 0; node < shape.nodes; ++node) {
    for (int h = 0; h < shape.heads; ++h) railRanks_.push_back(rankOf(node, headOf(node, h)));
  }
  for (int node = 0; node < shape.nodes; ++node) {
    for (int local = 0; local < shape.locals; ++local) build(node, local);
  }
  for (int h = 0; h < shape.heads; ++h) {
    CollNetNetwork::Set direct, chain;
    for (int node = 0; node < shape.nodes; ++node) {
      const Rank& head = ranks_[static_cast<std::size_t>(rankOf(node, headOf(node, h)))];
      direct.push_back(head.direct);
      std::vector<CollNetConn>& lanes = chain.emplace_back();
      for (const unsigned c : channelsOf(h)) lanes.push_back(head.chain[c]);
    }
    network_.join(direct, shape.firstStep);
    if (!chain[0].empty()) network_.join(chain, shape.firstStep);
  }
}

std::vector<unsigned> CollNetWorld::channelsOf(int rail) const {
  std::vector<unsigned> channels;
  for (unsigned c = 0; c < shape_.lanes; ++c) {
    if (railOf(c) == rail) channels.push_back(c);
  }
  return channels;
}

int CollNetWorld::positionOf(unsigned channel) const {
  int before = 0;
  for (unsigned c = 0; c < shape_.lanes; ++c) {
    if (railOf(c) < railOf(channel) || (railOf(c) == railOf(channel) && c < channel)) ++before;
  }
  return before;
}

std::vector<int> CollNetWorld::chainOf(int node, unsigned channel) const {
  std::vector<int> chain;
  const int n = shape_.locals;
  for (int i = 0; i < n; ++i) {
    const int step = node % 2 == 0 ? i : n - i;  // nodes go round in different directions
    chain.push_back(rankOf(node, (headOf(node, railOf(channel)) + step) % n));
  }
  return chain;
}

std::vector<CollNetConn> CollNetWorld::connect(unsigned lanes) {
  Area& area = areas_.emplace_back();
  const std::uint64_t areaBytes = std::uint64_t{lanes} * shape_.laneBytes;
  area.send.resize(areaBytes * kSteps / sizeof(Line));
  area.recv.resize(area.send.size());
  area.lanes.resize(lanes);
  std::vector<CollNetConn> conns;
  for (Lane& lane : area.lanes) {
    for (Counter* counter :
         {&lane.sendTail, &lane.sendHead, &lane.recvTail, &lane.recvHead, &lane.sendStep, &lane.recvStep}) {
      counter->value = shape_.firstStep;
    }
    conns.push_back({.sendSlots = reinterpret_cast<std::byte*>(area.send.data()),
                     .recvSlots = reinterpret_cast<std::byte*>(area.recv.data()),
                     .areaBytes = areaBytes,
                     .slotBytes = shape_.laneBytes,
                     .lane = static_cast<std::uint16_t>(conns.size()),
                     .lanes = static_cast<std::uint16_t>(lanes),
                     .words = &area.words,
                     .sendTail = &lane.sendTail,
                     .sendHead = &lane.sendHead,
                     .recvTail = &lane.recvTail,
                     .recvHead = &lane.recvHead,
                     .sendStep = &lane.sendStep,
                     .recvStep = &lane.recvStep,
                     .reserved = 0});
  }
  return conns;
}

void CollNetWorld::place(Rank& rank, int node, int self) {
  rank.chain.resize(shape_.lanes);
  for (unsigned c = 0; c < shape_.lanes; ++c) {
    const std::vector<int> chain = chainOf(node, c);
    const auto at = std::ranges::find(chain, self) - chain.begin();
    rank.places.push_back({.up = at == 0 ? -1 : chain[static_cast<std::size_t>(at - 1)],
                           .down = at + 1 == shape_.locals ? -1 : chain[static_cast<std::size_t>(at + 1)],
                           .position = positionOf(c),
                           .reserved = 0});
  }
}

void CollNetWorld::build(int node, int local) {
  const int self = rankOf(node, local);
  Rank& rank = ranks_[static_cast<std::size_t>(self)];
  place(rank, node, self);
  CollNetView& view = rank.view;
  view = {.nChannels = static_cast<std::int32_t>(shape_.lanes),
          .nNodes = shape_.nodes,
          .node = node,
          .nHeads = shape_.heads,
          .head = -1,
          .nLocals = shape_.locals,
          .local = local};
  for (int h = 0; h < shape_.heads; ++h) {
    view.heads[h] = rankOf(node, headOf(node, h));
    if (headOf(node, h) == local) view.head = h;
  }
  for (int i = 0; i < shape_.locals; ++i) view.locals[i] = rankOf(node, i);
  view.railRanks = railRanks_.data();
  if (view.head >= 0) {
    rank.direct = connect(shape_.lanes);
    const std::vector<unsigned> channels = channelsOf(view.head);
    const std::vector<CollNetConn> lanes = connect(static_cast<unsigned>(channels.size()));
    for (std::size_t i = 0; i < channels.size(); ++i) rank.chain[channels[i]] = lanes[i];
    view.direct = rank.direct.data();
  }
  view.chain = rank.chain.data();
  view.chainPlaces = rank.places.data();
  world_.giveCollNet(self, &view);
}

}  // namespace tutti::device::test
