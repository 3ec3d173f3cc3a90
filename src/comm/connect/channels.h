// The channels of a communicator: who owns the connections, and the tables through which kernels see them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ranks/abort.h"
#include "base/status.h"
#include "comm/connect/link_types.h"
#include "device/conn_view.h"
#include "topo/channels/rank_channels.h"

namespace tutti::device {
struct CollNetView;
}
namespace tutti::gpu {
class Device;
class DeviceBuffer;
class MemoryLedger;
}  // namespace tutti::gpu
namespace tutti::proxy {
class ProgressGroup;
class ProgressTask;
}  // namespace tutti::proxy
namespace tutti::transport {
class Endpoint;
}

namespace tutti::comm {

class SharedConnections;
struct ConnectContext;
struct Neighbours;
struct OpenLink;
struct PlanNeeds;
struct SharedEnd;
struct SharedKey;

/// Through which store a communicator shares, and who its ranks are there.
struct FamilyConnections {
  std::shared_ptr<SharedConnections> store;  ///< null: it shares nothing
  std::vector<int> places;                   ///< of each rank, in the family's numbering
};

/// What the tables of a communicator say before anything is connected.
struct ChannelPlan {
  int rank = 0;
  int nRanks = 1;
  topo::RankChannels channels;               ///< this rank's neighbours, and the rings it walks along
  const std::uint32_t* abortWord = nullptr;  ///< as kernels address it
};

/// A connection as a report of a stall looks at it.
struct ConnectedEnd {
  int channel = 0;
  int peer = -1;
  device::Direction direction = device::Direction::Send;
  device::ConnFifos fifos{};
  std::string transport;
  const proxy::ProgressTask* task = nullptr;  ///< null: no host thread stands in between
};

/// What is read of a connection to see whether it moves.
struct ConnectedCounters {
  int channel = 0;
  int peer = -1;
  device::ConnKind kind = device::ConnKind::Graph;
  device::ConnFifos fifos{};
  const proxy::ProgressTask* task = nullptr;  ///< null: no host thread stands in between
  std::string_view transport{};               ///< lives as long as the connection
};

/// Owns all endpoints of one rank and the device memory of CommView, ChannelViews and their connections. Used by one
/// thread at a time; kernels read the tables meanwhile, but only entries of links that were added before their launch.
class ChannelSet {
 public:
  /// The device must outlive the result.
  /// `ledger`, which may be null, counts the tables.
  static Result<std::unique_ptr<ChannelSet>> create(const gpu::Device& device, const ChannelPlan& plan,
                                                    std::shared_ptr<gpu::MemoryLedger> ledger = {});
  ChannelSet(const ChannelSet&) = delete;
  ~ChannelSet();

  const device::CommView* view() const;
  const Neighbours& neighbours() const { return *neighbours_; }

  /// Channels on which a peer is connected.
  ChannelMask connected(int peer, device::ConnKind kind, device::Direction direction) const;
  /// Those that are not connected yet, on the channels that they lack.
  std::vector<LinkRequest> missing(std::span<const LinkRequest> wanted) const;
  /// The same of everything that a plan needs. What `missing` held is forgotten.
  void findMissing(const PlanNeeds& needs, std::vector<LinkRequest>& missing) const;
  /// All that were ever added, by their transports; also while they are closed.
  const std::vector<KnownLink>& known() const { return known_; }
  /// Takes the endpoints over and publishes them to kernels launched from now on. The peer may be connected already on
  /// other channels.
  Status add(OpenLink link);

  /// Where connections are looked for before they are opened, and kept for others. What is found there is used from
  /// then on (adopt()).
  void shareBy(FamilyConnections family) { family_ = std::move(family); }
  /// Takes those of `wanted` that relatives have opened; `context` is the one they would be opened with.
  Status adopt(const ConnectContext& context, std::span<const LinkRequest> wanted);
  /// Takes the endpoints over, for relatives as well, as add() does for this one alone.
  Status addAndShare(const ConnectContext& context, OpenLink link);

  /// What kernels know of a network that reduces, as they address it, and the links inside the node that its algorithms
  /// take. Before any of them is planned. `drives`: the host has to drive this rank's part. Errors: the driver's.
  Status useCollNet(const device::CollNetView* view, std::vector<LinkRequest> direct, std::vector<LinkRequest> chain,
                    bool drives);

  /// Who drives connections that need it; all their tasks must be gone from there before this is destroyed.
  void driveBy(proxy::ProgressGroup& progress) { progress_ = &progress; }
  /// Whether there are any.
  bool driven() const { return driven_ || drivesCollNet_; }
  /// Whether some of them are no relative's as well.
  bool drivenAlone() const;
  /// Whether the memory of all ranks with Mesh connections is in reach of kernels. Where only the network connects one
  /// of them, the error says on whose side the others failed: ncclSystemError on this one, ncclRemoteError on the
  /// peer's. `func` by `algorithm` is what needs it.
  Status checkMesh(const char* func, const char* algorithm) const;

  /// What the channels were laid out as.
  const topo::RankChannels& layout() const { return plan_.channels; }
  /// A rank's end of a connection; null: it is not connected. Lasts until the set is closed.
  transport::Endpoint* endOf(int peer, int channel, device::ConnKind kind, device::Direction direction) const;

  /// Those of a link's ends that are connected. Any thread, while the set lives.
  std::vector<ConnectedEnd> endsOf(const LinkRequest& link) const;
  /// All that are connected. Any thread, while the set lives.
  std::vector<ConnectedCounters> allEnds() const;

  /// Of which connections it is asked what peers have consumed.
  enum class Extent : std::uint8_t {
    All,
    Own,  ///< but of those that relatives may use as well
  };
  /// Whether peers have consumed everything this rank's kernels sent; the arguments as below.
  Result<bool> allConsumed(const std::function<bool(int rank)>& hasLeft = {}, Extent extent = Extent::All) const;
  /// Waits until peers have consumed everything this rank's kernels sent: then nobody writes to our memory any more,
  /// and it may be freed without asking anybody; that of shared connections when these are settled. Leaves when `abort`
  /// is raised or at the deadline. `hasLeft`: ranks that take nothing any more; none: nobody leaves.
  Status awaitConsumed(const Abort& abort, Deadline deadline, const std::function<bool(int rank)>& hasLeft = {},
                       Extent extent = Extent::All);

  /// Those to `peer`, unset: all of them, are to end in peace (proxy::ProgressTask::part); not those that relatives may
  /// use as well. Any thread, while the set lives.
  void part(std::optional<int> peer = {}) const;
  /// Whether none of them is at that. Any thread.
  bool parted() const;

  /// To be closed, in this order, with all ranks waiting for each other in between: lets go of what peers own, and
  /// nobody drives the connections any more; kernels find none in the tables. No kernel may run or be launched, and no
  /// relative may be left.
  Status detach();
  /// Closes what leads in this direction, and frees its memory.
  void close(device::Direction direction);

 private:
  ChannelSet(const gpu::Device& device, ChannelPlan plan, std::unique_ptr<gpu::DeviceBuffer> table);
  static std::size_t slotOf(int peer, device::ConnKind kind, device::Direction direction) {
    const std::size_t link = static_cast<std::size_t>(peer) * device::kConnKinds + static_cast<std::size_t>(kind);
    return link * 2 + (direction == device::Direction::Send ? 0 : 1);
  }
  Status uploadSkeleton() const;
  class Driving;
  bool isShared(transport::Endpoint& endpoint) const;
  SharedKey keyOf(const ConnectContext& context, const LinkRequest& link, int channel, bool driven) const;
  SharedEnd relativesEnd(const ConnectContext& context, const LinkRequest& link, int channel) const;
  Status drive(transport::Endpoint& endpoint);
  void note(const OpenLink& link);
  /// A link whose peer has not consumed everything yet; null: there is none.
  Result<const OpenLink*> unconsumed(const std::function<bool(int rank)>& hasLeft, Extent extent) const;

  const gpu::Device* device_;
  ChannelPlan plan_;
  const std::unique_ptr<Neighbours> neighbours_;
  mutable std::mutex mutex_;     ///< links_, between add() and endsOf()
  std::vector<OpenLink> links_;  ///< by slotOf(); without endpoints: not connected
  std::vector<KnownLink> known_;
  std::unique_ptr<gpu::DeviceBuffer> table_;
  const device::CollNetView* collNet_ = nullptr;  ///< null: there is none
  bool drivesCollNet_ = false;
  FamilyConnections family_;
  proxy::ProgressGroup* progress_ = nullptr;
  bool driven_ = false;
  std::optional<Fallback> proxiedMesh_;  ///< of a Mesh connection that needs that; unset: none does
};

/// Opens those of `wanted` that are not connected yet; waits for the peers of these to do the same.
Status openMissing(const ConnectContext& context, ChannelSet& channels, std::span<const LinkRequest> wanted);

/// Collective: opens the connections to both neighbours in the ring.
Status connectRing(const ConnectContext& context, ChannelSet& channels);

}  // namespace tutti::comm
