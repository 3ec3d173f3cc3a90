// A head's connection to a network that reduces and gathers by itself: how it comes about, what it has, and its end.
//
// What comes in: the handles of the same rail's heads of all nodes. What goes out: lanes for kernels
// (device/collnet_view.h), and the task that the progress engine drives meanwhile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "device/direction.h"
#include "plugin/network/collnet.h"
#include "topo/machine/peer_info.h"
#include "transport/collnet/lane_set.h"
#include "transport/net/lane/slot_place.h"

namespace tutti {
class Abort;
}
namespace tutti::proxy {
class ProgressTask;
class StepEvents;
}  // namespace tutti::proxy
namespace tutti::transport {
class RegisteredMemory;
}

namespace tutti::collnet {

class CollNetTask;
struct CollNetPath;
struct Connection;
struct SetSetup;

struct LinkSetup {
  /// Lasts, with its library, as long as any of its owners: a connect that does not return is one.
  std::shared_ptr<plugin::CollNet> network;
  int device = 0;  ///< the network's
  net::SlotPlace send;
  net::SlotPlace recv;
  topo::PeerInfo self;
  int rail = 0;
  const gpu::Device* gpu = nullptr;                ///< must outlive the link
  std::shared_ptr<gpu::MemoryLedger> ledger = {};  ///< counts its device memory; may be null
  /// What the network may send from, and receive into, past the slots; null: none of the application's memory.
  std::shared_ptr<transport::RegisteredMemory> registered = {};
};

/// What a head tells the heads of its rail on other nodes. Trivially copyable.
struct CollNetAddress {
  plugin::NetHandle handle{};
  std::uint64_t mostBytes = 0;  ///< that its device takes in a call
};

/// How long a connect may take unless the communicator ends before.
inline constexpr milliseconds kConnectPatience{60'000};

/// Used by one thread at a time, except task(). Order of calls: listen() -> [exchange] -> connect() -> addLanes() ->
/// conn(), task(). Its end gives back whatever it has by then in the order that networks expect: registrations,
/// connection, listener; memory goes last, for calls may be under way. No engine may have the task then, and no kernel
/// use the lanes. The end never waits for a peer.
class CollNetLink {
 public:
  explicit CollNetLink(LinkSetup setup);
  CollNetLink(const CollNetLink&) = delete;
  CollNetLink& operator=(const CollNetLink&) = delete;
  ~CollNetLink();

  /// Errors: the network's; ncclInvalidUsage where its device takes less than an element.
  Result<CollNetAddress> listen();
  /// `nodes`: what listen() has returned on each node, in their order; `node`: this one's place there. Waits until all
  /// of them have called it, up to the deadline and as long as `abort`, which may be null, is not raised. Errors: the
  /// network's; ncclSystemError where it is not available; ncclRemoteError where it has not returned in time, and the
  /// abort's. After an error only the end may follow.
  Status connect(std::span<const CollNetAddress> nodes, int node, Deadline deadline, const Abort* abort);
  /// Memory for a set of lanes, registered with the network, whose counters are zero; its number. At most
  /// CollNetTask::kMostSets. Not while an engine has the task. Errors: no memory; the network's. After an error only
  /// the end may follow.
  Result<std::size_t> addLanes(const LaneSetShape& shape);
  /// A lane of a set as kernels address it.
  device::CollNetConn conn(std::size_t set, int lane) const;
  /// What a host thread has to drive while kernels use the lanes. Owned by the link.
  proxy::ProgressTask* task();
  /// What profilers hear of the steps of a set in one direction. Any thread.
  std::shared_ptr<proxy::StepEvents> stepEvents(std::size_t set, device::Direction direction) const;

  /// Gives back to the network what it has given; the memory stays. As the end, which does it at the latest.
  void close();

  /// For the lines about connections: "COLLNET/Fake/0/GDRDMA".
  std::string description(device::Direction direction) const;
  const CollNetPath& path() const;

 private:
  Status take(void* connection);
  /// A set whose memory is registered, as `driver` says then. Where the network refuses memory of the device, that lies
  /// in host memory, and so does that of all later sets.
  Result<std::unique_ptr<LaneSet>> makeSet(const LaneSetShape& shape, SetSetup& driver);
  Status registerSet(const LaneSet& set, SetSetup& driver);
  Result<void*> registerArea(const LaneSet::Area& area, const net::SlotPlace& place);
  Result<void*> registerMemory(void* data, std::size_t bytes, const net::SlotPlace& place);
  void logLanes(const LaneSetShape& shape) const;

  LinkSetup setup_;
  std::vector<std::unique_ptr<LaneSet>> sets_;  ///< outlive the connection
  const std::unique_ptr<Connection> connection_;
  void* listener_ = nullptr;
  std::vector<void*> registrations_;
  /// How the network is told of the application's memory; null: it is not.
  struct User;
  std::unique_ptr<User> user_;
  const std::unique_ptr<CollNetTask> task_;  ///< goes before the connection
};

}  // namespace tutti::collnet
