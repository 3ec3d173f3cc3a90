// One connection that a rank sends over in another's stead, from the stranger at its local socket to the last byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/fd.h"
#include "base/socket/unproven.h"
#include "base/status.h"
#include "gpu/context.h"
#include "plugin/network/net.h"
#include "proxy/engine.h"
#include "topo/machine/peer_info.h"
#include "transport/net/endpoint/connection.h"
#include "transport/net/lane/path.h"
#include "transport/net/pxn/memory.h"
#include "transport/net/pxn/pool.h"
#include "transport/net/pxn/pxn_connections.h"
#include "transport/net/pxn/send_task.h"
#include "transport/net/pxn/wire.h"
#include "transport/shm/segment.h"

namespace tutti::net::pxn {

/// What the links of one relay share; must outlive them.
struct Host {
  plugin::Net& net;
  const gpu::Device& device;
  proxy::ProgressGroup& group;
  PxnConnections& connections;
  RelayPools& pools;
  std::span<const topo::PeerInfo> peers;  ///< of all ranks
  int rank = 0;                           ///< the relay
  Secret secret{};
};

/// Used by the service's thread alone; its work runs on the engine of the relay's device. Gives everything back at
/// whatever point it ends.
class RelayLink {
 public:
  RelayLink(const Host& host, Fd line) : host_(host), line_(std::move(line)) {}
  RelayLink(const RelayLink&) = delete;
  ~RelayLink();

  int line() const { return line_.get(); }
  /// It has not shown a pass; it may stay for kUnprovenTime, in a place of the process.
  bool stranger() const { return phase_ == Phase::Silent; }
  void take(UnprovenPlaces::Place place) { place_ = std::move(place); }
  /// It has proved that it belongs to the communicator.
  bool known() const { return phase_ >= Phase::Joining; }
  /// When it must have gone on with that.
  Deadline until() const { return until_; }
  /// step() is to be called from time to time.
  bool joining() const { return phase_ == Phase::Joining || phase_ == Phase::Probing; }
  /// Takes what has come on the line; false: it is over.
  bool listen();
  /// Goes on with connecting, without waiting; false: it is over.
  bool step();

 private:
  enum class Phase : std::uint8_t { Silent, Greeted, Joining, Joined, Probing, Running };
  static constexpr std::size_t kSimple = 0;
  static constexpr std::size_t kConnections = 2;

  bool take(std::span<const std::byte> packet);
  bool greet(std::span<const std::byte> packet);
  bool take(const Order& order);
  void wake();
  Status checkOrder(const Order& order) const;
  Status begin(const Order& order);
  Status joinPool(const Order& order);
  Status sendMemory();
  Status send(const Answer& answer, int descriptor) const;
  /// Says what needs no more than that.
  Status tell(Kind kind) const;
  Status prepare();
  Result<bool> probe(std::size_t join);
  Status run();
  Status advance();
  void refuse(Status why);
  std::byte* base() const { return memory_->memory().data(); }
  PxnStatusPage& status() const { return *reinterpret_cast<PxnStatusPage*>(base()); }

  const Host& host_;
  Fd line_;
  UnprovenPlaces::Place place_;
  Deadline until_ = Deadline::in(kUnprovenTime);
  Phase phase_ = Phase::Silent;
  Hello hello_;
  Nonce challenge_{};
  net::NetPath path_;
  Layout layout_;
  std::shared_ptr<RelayPool> pool_;     ///< null: slots of its own; outlives the network connections …
  std::optional<shm::Segment> memory_;  ///< … and so does this
  std::array<net::NetLane, kConnections> lanes_{};
  std::array<std::shared_ptr<net::NetConnection>, kConnections> connections_;
  std::array<void*, kConnections> probes_{};
  std::array<bool, kConnections> probed_{};
  std::unique_ptr<PxnSendTask> work_;
};

}  // namespace tutti::net::pxn
