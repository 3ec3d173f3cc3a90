#include "comm/connect/channels.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/host.h"
#include "base/log.h"
#include "comm/connect/connect.h"
#include "comm/connect/links.h"
#include "comm/connect/neighbours.h"
#include "comm/connect/shared_connections.h"
#include "gpu/memory.h"
#include "gpu/memory_ledger.h"
#include "proxy/group.h"

namespace tutti::comm {

namespace {

/// One entry of a channel's table of connections, of senders or of receivers.
constexpr std::size_t kConnBytes = sizeof(device::SendConn);
static_assert(sizeof(device::RecvConn) == kConnBytes);

/// Where things lie in the one device allocation: CommView, ChannelViews, SendConns and RecvConns, ring orders.
struct TableLayout {
  std::size_t nRanks;
  std::size_t nChannels;
  std::size_t nRings;
  explicit TableLayout(const ChannelPlan& plan)
      : nRanks(static_cast<std::size_t>(plan.nRanks)),
        nChannels(plan.channels.channels.size()),
        nRings(plan.channels.rings.size()) {}

  std::size_t channels() const { return sizeof(device::CommView); }
  std::size_t conns() const { return channels() + nChannels * sizeof(device::ChannelView); }
  std::size_t conn(device::Direction direction, device::ConnKind kind, std::size_t channel, std::size_t peer) const {
    const std::size_t pair = channel * device::kConnKinds + static_cast<std::size_t>(kind);
    const std::size_t block = pair * 2 + (direction == device::Direction::Send ? 0 : 1);
    return conns() + (block * nRanks + peer) * kConnBytes;
  }
  std::size_t ring(std::size_t number) const {
    const std::size_t first = conns() + nChannels * device::kConnKinds * 2 * nRanks * kConnBytes;
    return first + number * nRanks * sizeof(std::int32_t);
  }
  std::size_t bytes() const { return ring(nRings); }
};

device::TreeView treeView(const topo::RankPlace& place) {
  static_assert(std::tuple_size_v<decltype(place.down)> == device::kMaxTreeChildren);
  device::TreeView view{};
  view.up = place.up;
  std::copy(place.down.begin(), place.down.end(), view.down);
  return view;
}

/// Copies what kernels see of a connection to its place in the table.
Status upload(const gpu::Device& device, const transport::ConnView& view, CUdeviceptr place) {
  return std::visit(
      [&](const auto& conn) { return gpu::copyToDevice(device, place, std::as_bytes(std::span(&conn, 1))); }, view);
}

}  // namespace

ChannelSet::ChannelSet(const gpu::Device& device, ChannelPlan plan, std::unique_ptr<gpu::DeviceBuffer> table)
    : device_(&device),
      plan_(std::move(plan)),
      neighbours_(std::make_unique<Neighbours>(neighboursOf(plan_.rank, plan_.nRanks, plan_.channels.channels))),
      links_(static_cast<std::size_t>(plan_.nRanks) * device::kConnKinds * 2),
      table_(std::move(table)) {}

ChannelSet::~ChannelSet() = default;

ChannelMask ChannelSet::connected(int peer, device::ConnKind kind, device::Direction direction) const {
  const OpenLink& link = links_[slotOf(peer, kind, direction)];
  return link.endpoints.empty() ? 0 : link.request.channels;
}

Result<std::unique_ptr<ChannelSet>> ChannelSet::create(const gpu::Device& device, const ChannelPlan& plan,
                                                       std::shared_ptr<gpu::MemoryLedger> ledger) {
  const gpu::MemoryUse use("channel tables", std::move(ledger), gpu::MemoryClass::Persistent);
  ASSIGN(gpu::DeviceBuffer table, gpu::DeviceBuffer::create(device, TableLayout(plan).bytes(), use));
  std::unique_ptr<ChannelSet> set(new ChannelSet(device, plan, std::make_unique<gpu::DeviceBuffer>(std::move(table))));
  TRY(set->uploadSkeleton());
  return set;
}

const device::CommView* ChannelSet::view() const {
  return reinterpret_cast<const device::CommView*>(table_->data());
}

Status ChannelSet::uploadSkeleton() const {
  const TableLayout layout(plan_);
  std::vector<std::byte> image(layout.bytes());
  std::byte* const base = table_->data();

  const device::CommView comm{
      .channels = reinterpret_cast<device::ChannelView*>(base + layout.channels()),
      .abortWord = plan_.abortWord,
      .rank = plan_.rank,
      .nRanks = plan_.nRanks,
      .nChannels = static_cast<std::uint32_t>(layout.nChannels),
      .reserved = 0,
      .collNet = collNet_,
      .reserved2 = 0,
  };
  std::memcpy(image.data(), &comm, sizeof(comm));

  const auto senders = [&](device::ConnKind kind, std::size_t channel) {
    return reinterpret_cast<device::SendConn*>(base + layout.conn(device::Direction::Send, kind, channel, 0));
  };
  const auto receivers = [&](device::ConnKind kind, std::size_t channel) {
    return reinterpret_cast<device::RecvConn*>(base + layout.conn(device::Direction::Recv, kind, channel, 0));
  };
  for (std::size_t c = 0; c < layout.nChannels; ++c) {
    const topo::RankChannel& own = plan_.channels.channels[c];
    const device::ChannelView channel{
        .send = {senders(device::ConnKind::Graph, c), senders(device::ConnKind::Mesh, c)},
        .recv = {receivers(device::ConnKind::Graph, c), receivers(device::ConnKind::Mesh, c)},
        .ringRanks = reinterpret_cast<const std::int32_t*>(base + layout.ring(static_cast<std::size_t>(own.ring))),
        .ringPrev = own.prev,
        .ringNext = own.next,
        .tree = treeView(own.tree),
    };
    std::memcpy(image.data() + layout.channels() + c * sizeof(channel), &channel, sizeof(channel));
  }
  for (std::size_t r = 0; r < layout.nRings; ++r) {
    const std::vector<std::int32_t>& ring = plan_.channels.rings[r];
    std::memcpy(image.data() + layout.ring(r), ring.data(), ring.size() * sizeof(std::int32_t));
  }
  return gpu::copyToDevice(*device_, table_->address(), image);
}

Status ChannelSet::useCollNet(const device::CollNetView* view, std::vector<LinkRequest> direct,
                              std::vector<LinkRequest> chain, bool drives) {
  drivesCollNet_ = drives;
  neighbours_->collNetDirect = std::move(direct);
  neighbours_->collNetChain = std::move(chain);
  collNet_ = view;
  const auto value = std::as_bytes(std::span(&collNet_, 1));
  return gpu::copyToDevice(*device_, table_->address() + offsetof(device::CommView, collNet), value);
}

/// Until kept: whoever drives some of the endpoints of a link that is about to be dropped drives them no more.
class ChannelSet::Driving {
 public:
  Driving(const ChannelSet& set, const OpenLink& link) : set_(set), link_(&link) {}
  Driving(const Driving&) = delete;
  ~Driving() {
    if (link_ == nullptr || set_.progress_ == nullptr) return;
    for (const auto& endpoint : link_->endpoints) {
      if (endpoint->task() != nullptr) set_.progress_->remove(endpoint->task());
    }
  }
  void keep() { link_ = nullptr; }

 private:
  const ChannelSet& set_;
  const OpenLink* link_;
};

Status ChannelSet::add(OpenLink link) {
  const TableLayout layout(plan_);
  const auto peer = static_cast<std::size_t>(link.request.peer);
  const std::vector<int> channels = channelsIn(link.request.channels);
  for (std::size_t i = 0; i < link.endpoints.size(); ++i) {
    const auto channel = static_cast<std::size_t>(channels[i]);
    const std::size_t place = layout.conn(link.request.direction, link.request.kind, channel, peer);
    TRY(upload(*device_, link.endpoints[i]->view(), table_->address() + place));
  }
  Driving driving(*this, link);
  for (const auto& endpoint : link.endpoints) {
    TRY(drive(*endpoint));
    if (endpoint->task() != nullptr && link.request.kind == device::ConnKind::Mesh) {
      // Of several the one that accuses this rank itself: of its own failures it knows best.
      if (!proxiedMesh_ || link.fallback.side == Fallback::Side::Here) proxiedMesh_ = link.fallback;
    }
  }
  note(link);
  const std::lock_guard lock(mutex_);
  OpenLink& held = links_[slotOf(link.request.peer, link.request.kind, link.request.direction)];
  held.endpoints.reserve(held.endpoints.size() + link.endpoints.size());
  driving.keep();
  if (held.endpoints.empty()) {
    held = std::move(link);
    return {};
  }
  for (std::size_t i = 0; i < link.endpoints.size(); ++i) {
    const ChannelMask mask = oneChannel(channels[i]);
    const int before = std::popcount(held.request.channels & (mask - 1));
    held.endpoints.insert(held.endpoints.begin() + before, std::move(link.endpoints[i]));
    held.request.channels |= mask;
  }
  return {};
}

void ChannelSet::note(const OpenLink& link) {
  const auto same = [&](const KnownLink& known) {
    LinkRequest request = known.request;
    request.channels = link.request.channels;
    return known.transport == link.transport && request == link.request;
  };
  const auto known = std::find_if(known_.begin(), known_.end(), same);
  if (known == known_.end()) {
    known_.push_back({link.request, link.transport});
  } else {
    known->request.channels |= link.request.channels;
  }
}

Status ChannelSet::detach() {
  // Waits for copies on the library's own stream as well, which may be reading counters for a report.
  TRY(uploadSkeleton());
  for (OpenLink& link : links_) {
    for (const auto& endpoint : link.endpoints) {
      if (isShared(*endpoint)) continue;
      if (endpoint->task() != nullptr) progress_->remove(endpoint->task());
      endpoint->detach();
    }
  }
  if (family_.store) family_.store->detach();
  return {};
}

void ChannelSet::close(device::Direction direction) {
  std::vector<OpenLink> closed;
  {
    const std::lock_guard lock(mutex_);
    for (OpenLink& link : links_) {
      if (!link.endpoints.empty() && link.request.direction == direction) closed.push_back(std::exchange(link, {}));
    }
  }
  if (family_.store) family_.store->close(direction);
}

/// Algorithms over Mesh connections are planned where all ranks reach each other's memory by what the transports say of
/// themselves. Where these fail as they connect, the network takes their place; its slots hold messages, and such an
/// algorithm would go wrong in them without a word.
Status ChannelSet::checkMesh(const char* func, const char* algorithm) const {
  if (!proxiedMesh_) return {};
  constexpr const char* kRemedy =
      "Remove the cause (memory, limits such as ulimit -f and -n), or set NCCL_P2P_DISABLE=1 and NCCL_SHM_DISABLE=1 on "
      "all ranks";
  const std::string self =
      fmt::format("rank {} of {} on host {}, device {}", plan_.rank, plan_.nRanks, hostName(), device_->ordinal());
  const auto& [side, peer, reasons] = *proxiedMesh_;
  if (side == Fallback::Side::Peer) {
    return fail(ncclRemoteError,
                "{} has no memory in common with {}, which {} by {} needs: only the network connects them. What failed "
                "did so on that rank or between the two: {}. Look for the first error there. {}",
                peer, self, func, algorithm, reasons, kRemedy);
  }
  return fail(ncclSystemError,
              "{}: {} by {} needs memory in common with {}, but only the network connects them, for the others failed "
              "here: {}. {}",
              self, func, algorithm, peer, reasons, kRemedy);
}

Status ChannelSet::drive(transport::Endpoint& endpoint) {
  proxy::ProgressTask* const task = endpoint.task();
  if (task == nullptr) return {};
  if (progress_ == nullptr) return fail(ncclInternalError, "Nobody drives connection {}", endpoint.description());
  TRY(progress_->add(task));
  driven_ = true;
  return {};
}

std::vector<ConnectedEnd> ChannelSet::endsOf(const LinkRequest& link) const {
  std::vector<ConnectedEnd> ends;
  const std::lock_guard lock(mutex_);
  const OpenLink& held = links_[slotOf(link.peer, link.kind, link.direction)];
  if (held.endpoints.empty()) return ends;
  const std::vector<int> channels = channelsIn(held.request.channels);
  for (std::size_t i = 0; i < held.endpoints.size(); ++i) {
    if ((link.channels & oneChannel(channels[i])) == 0) continue;
    transport::Endpoint& end = *held.endpoints[i];
    ends.push_back({channels[i], link.peer, link.direction, transport::fifosOf(end.view()),
                    std::string(end.description()), end.task()});
  }
  return ends;
}

transport::Endpoint* ChannelSet::endOf(int peer, int channel, device::ConnKind kind,
                                       device::Direction direction) const {
  const OpenLink& held = links_[slotOf(peer, kind, direction)];
  const ChannelMask channels = held.endpoints.empty() ? 0 : held.request.channels;
  if ((channels & oneChannel(channel)) == 0) return nullptr;
  const int before = std::popcount(channels & (oneChannel(channel) - 1));
  return held.endpoints[static_cast<std::size_t>(before)].get();
}

std::vector<ConnectedCounters> ChannelSet::allEnds() const {
  std::vector<ConnectedCounters> ends;
  const std::lock_guard lock(mutex_);
  for (const OpenLink& link : links_) {
    const std::vector<int> channels = channelsIn(link.request.channels);
    for (std::size_t i = 0; i < link.endpoints.size(); ++i) {
      transport::Endpoint& end = *link.endpoints[i];
      ends.push_back({channels[i], link.request.peer, link.request.kind, transport::fifosOf(end.view()), end.task(),
                      end.description()});
    }
  }
  return ends;
}

std::vector<LinkRequest> ChannelSet::missing(std::span<const LinkRequest> wanted) const {
  std::vector<LinkRequest> missing;
  for (LinkRequest link : wanted) {
    link.channels &= ~connected(link.peer, link.kind, link.direction);
    if (link.channels != 0) missing.push_back(link);
  }
  return missing;
}

void ChannelSet::findMissing(const PlanNeeds& needs, std::vector<LinkRequest>& missing) const {
  missing.clear();
  forEachLink(needs, *neighbours_, [&](LinkRequest link) {
    if (link.peer == plan_.rank || link.peer < 0) return;
    link.channels &= ~connected(link.peer, link.kind, link.direction);
    if (link.channels != 0) addLink(missing, plan_.rank, link);
  });
}

}  // namespace tutti::comm
