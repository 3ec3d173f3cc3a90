// A communicator's answers to its network transport: which NIC, slots where, through whom; and who has left.
#pragma once

#include "device/direction.h"
#include "transport/net/lane/routing.h"
#include "transport/net/lane/peer_farewells.h"

struct ncclComm;

namespace tutti {

struct CommParts;

/// Answers from the topology (CommParts::nics), which init has read before connections are made. Looks at nothing that
/// changes afterwards.
class CommRouting final : public NetRouting {
 public:
  /// `comm`, which has a network, must outlive its transports.
  explicit CommRouting(const ncclComm& comm) : comm_(comm) {}
  EndPlace placeOf(const LinkSpec& link, device::Direction direction) const override;
  NicPlace nicOf(const LinkSpec& link) const override;
  bool routed(const LinkSpec& link) const override;
  SendRoute routeOf(const LinkSpec& link, NicPlace receiver) const override;

 private:
  const ncclComm& comm_;
};

/// Asks the bootstrap, to which peers say goodbye; where it is gone, this rank is leaving, and all have left.
class CommFarewells final : public PeerFarewells {
 public:
  /// `parts` must outlive the connections.
  explicit CommFarewells(const CommParts& parts) : parts_(parts) {}
  bool hasLeft(int peer) const override;

 private:
  const CommParts& parts_;
};

}  // namespace tutti
