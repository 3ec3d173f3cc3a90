// One queue pair: created, connected, broken up.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "transport/net/ib/nic/gid.h"
#include "transport/net/ib/nic/verbs.h"

namespace tutti::net::ib {

struct IbOptions;
struct IbPort;

/// Where a port is reached, as its peer is told. Trivially copyable, travels as it is.
struct PortAddress {
  Gid gid{};
  std::uint32_t gidIndex = 0;
  std::uint32_t key = 0;  ///< remote key of the end's own memory (SideBlock::memory) through this port
  std::uint16_t lid = 0;  ///< of InfiniBand
  std::uint8_t mtu = 0;   ///< an ibv_mtu
  std::uint8_t ethernet = 0;
  std::uint8_t number = 0;     ///< of the port on its NIC
  std::uint8_t needsGid = 0;   ///< also within the subnet
  std::array<char, 34> nic{};  ///< its name, ending in a zero, perhaps cut

  /// "mlx5_0:1 (GID 3 ::ffff:10.0.0.1)"
  std::string text() const;
};
static_assert(std::is_trivially_copyable_v<PortAddress> && sizeof(PortAddress) == 64);

/// What of the enhanced connection establishment (ECE) two queue pairs use; a vendor's own numbers. Trivially copyable,
/// travels as it is.
struct EceOptions {
  std::uint32_t used = 0;  ///< 0: none
  std::uint32_t vendor = 0;
  std::uint32_t options = 0;
  std::uint32_t mask = 0;
};

/// What a queue pair is made for.
struct QueuePairShape {
  ibv_cq* completions = nullptr;
  std::uint32_t sends = 0;  ///< work requests that may be under way
  std::uint32_t receives = 0;
  std::uint32_t inlineBytes = 0;
  int trafficClass = 0;
};

/// How both ends of a queue pair are reached.
struct QueuePairPath {
  PortAddress local;
  PortAddress remote;
  std::uint32_t remoteNumber = 0;
  int serviceLevel = 0;
  std::uint32_t firstPacket = 0;  ///< number of the first packet, of 24 bits, in either direction
  EceOptions ece;
};

/// The attributes of the change to RTR (InfiniBand Architecture Specification, volume 1, 10.3.1). Pure.
ibv_qp_attr readyToReceive(const QueuePairPath& path, int trafficClass);

class QueuePair {
 public:
  /// In the state INIT. The port and the completion queue outlive it. Errors: ncclSystemError.
  static Result<std::unique_ptr<QueuePair>> create(const IbPort& port, const QueuePairShape& shape,
                                                   const IbOptions& options);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  /// What its NIC could use, or, once connected, uses of what the path has. None: the NIC or the library has no ECE, or
  /// the settings do without.
  EceOptions ece() const;
  /// Goes on to RTR and RTS. False: the NIC ran into a timeout, which may pass: call again. Errors: ncclSystemError
  /// with both ports.
  Result<bool> connect(const QueuePairPath& path);
  bool connected() const { return state_ == IBV_QPS_RTS; }
  /// Whatever is under way completes, with an error, and nothing touches memory any more.
  void breakUp();

  ibv_qp* get() const { return qp_; }
  std::uint32_t number() const { return qp_->qp_num; }
  const IbPort& port() const { return port_; }

  /// Room for work requests: `wanted` more, of which one completion tells.
  bool hasRoomToSend(std::uint32_t wanted) const { return sending_ + wanted <= shape_.sends; }
  void sent(std::uint32_t requests) { sending_ += requests; }
  void completed(std::uint32_t requests) { sending_ -= requests; }
  /// Counts a work request that tells nothing; how many one that does is to stand for, itself included, or 0: not yet.
  std::uint32_t quietly(std::uint32_t every) {
    if (++quiet_ < every) return 0;
    return std::exchange(quiet_, 0);
  }

 private:
  QueuePair(const IbPort& port, ibv_qp* qp, const QueuePairShape& shape, const IbOptions& options);
  Status setEce(const QueuePairPath& path);
  Result<bool> change(ibv_qp_attr attributes, int mask, const QueuePairPath* path);
  Status refused(int error, ibv_qp_state wanted, const QueuePairPath* path) const;

  const IbPort& port_;
  ibv_qp* qp_;
  QueuePairShape shape_;
  const IbOptions& options_;
  ibv_qp_state state_ = IBV_QPS_RESET;
  std::uint32_t sending_ = 0;  ///< work requests posted whose end is not known
  std::uint32_t quiet_ = 0;
  int tries_ = 0;
  SteadyClock::time_point again_{};
};

}  // namespace tutti::net::ib
