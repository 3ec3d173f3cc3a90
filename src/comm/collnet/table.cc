#include "comm/collnet/table.h"

#include <algorithm>
#include <cstring>

#include "comm/collnet/lanes.h"
#include "comm/collnet/rails.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {

namespace {

/// Where things lie: the view, the lanes of both algorithms by channel, the places in chains, the heads of all nodes.
struct TableLayout {
  std::size_t channels;
  std::size_t heads;
  TableLayout(const Rails& rails, int nChannels)
      : channels(static_cast<std::size_t>(nChannels)), heads(rails.ranks.size()) {}

  std::size_t direct() const { return sizeof(device::CollNetView); }
  std::size_t chain() const { return direct() + channels * sizeof(device::CollNetConn); }
  std::size_t places() const { return chain() + channels * sizeof(device::CollNetConn); }
  std::size_t ranks() const { return places() + channels * sizeof(device::CollNetChainPlace); }
  std::size_t bytes() const { return ranks() + heads * sizeof(std::int32_t); }
};

/// Lanes at the places of their channels; zeros elsewhere.
void putLanes(std::byte* at, std::span<const int> channels, std::span<const device::CollNetConn> lanes) {
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    std::memcpy(at + static_cast<std::size_t>(channels[i]) * sizeof(lanes[i]), &lanes[i], sizeof(lanes[i]));
  }
}

template <class T>
const T* pointerTo(std::uint64_t address) {
  return reinterpret_cast<const T*>(address);
}

device::CollNetView viewOf(const topo::RankLayout& layout, const Rails& rails, const CollNetLanes& lanes) {
  const int node = layout.nodeOf(layout.rank());
  device::CollNetView view{};
  view.nChannels = lanes.nChannels;
  view.nNodes = layout.nNodes();
  view.node = node;
  view.nHeads = rails.heads;
  view.head = lanes.head;
  view.nLocals = layout.localRanks();
  view.local = layout.localRank();
  for (int rail = 0; rail < rails.heads; ++rail) view.heads[rail] = rails.headOf(node, rail);
  std::ranges::copy(layout.ranksOnNode(node), view.locals);
  return view;
}

}  // namespace

std::size_t collNetTableBytes(const Rails& rails, int nChannels) {
  return TableLayout(rails, nChannels).bytes();
}

std::vector<std::byte> collNetTable(const topo::RankLayout& layout, const Rails& rails, const CollNetLanes& lanes,
                                    std::span<const device::CollNetConn> direct,
                                    std::span<const device::CollNetConn> chain, std::uint64_t address) {
  const TableLayout table(rails, lanes.nChannels);
  std::vector<std::byte> image(table.bytes());
  device::CollNetView view = viewOf(layout, rails, lanes);
  view.railRanks = pointerTo<std::int32_t>(address + table.ranks());
  if (!direct.empty()) view.direct = pointerTo<device::CollNetConn>(address + table.direct());
  if (!lanes.chainPlaces.empty()) {
    view.chain = pointerTo<device::CollNetConn>(address + table.chain());
    view.chainPlaces = pointerTo<device::CollNetChainPlace>(address + table.places());
  }
  std::memcpy(image.data(), &view, sizeof(view));
  putLanes(image.data() + table.direct(), lanes.directLanes, direct);
  putLanes(image.data() + table.chain(), lanes.chainLanes, chain);
  std::memcpy(image.data() + table.places(), lanes.chainPlaces.data(),
              lanes.chainPlaces.size() * sizeof(device::CollNetChainPlace));
  for (std::size_t i = 0; i < rails.ranks.size(); ++i) {
    const auto rank = static_cast<std::int32_t>(rails.ranks[i]);
    std::memcpy(image.data() + table.ranks() + i * sizeof(rank), &rank, sizeof(rank));
  }
  return image;
}

}  // namespace tutti::comm
