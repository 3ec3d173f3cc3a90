// A communicator's answers to its network transport: which NIC, slots where, through whom; and who has left.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/direction.h"
#include "transport/net/lane/peer_farewells.h"
#include "transport/net/lane/routing.h"

struct ncclComm;

namespace tutti::comm {

class FamilyPeers;
struct CommParts;

/// Answers from the topology (CommNetwork::nics()), which init has read before connections are made. Looks at nothing
/// that changes afterwards.
class CommRouting final : public net::NetRouting {
 public:
  /// `comm`, which has a network, must outlive its transports.
  explicit CommRouting(const ncclComm& comm) : comm_(comm) {}
  net::EndPlace placeOf(const transport::LinkSpec& link, device::Direction direction) const override;
  net::NicPlace nicOf(const transport::LinkSpec& link) const override;
  bool routed(const transport::LinkSpec& link) const override;
  net::SendRoute routeOf(const transport::LinkSpec& link, net::NicPlace receiver) const override;

 private:
  const ncclComm& comm_;
};

/// Asks the bootstrap, to which peers say goodbye; where it is gone, this rank is leaving, and all have left.
class CommFarewells final : public net::PeerFarewells {
 public:
  /// `parts` must outlive the connections.
  explicit CommFarewells(const CommParts& parts) : parts_(parts) {}
  bool hasLeft(int peer) const override;
  std::string exitOf(int peer) const override;

 private:
  const CommParts& parts_;
};

/// The same for connections that several communicators use: a peer has left when it has left all of them.
class FamilyFarewells final : public net::PeerFarewells {
 public:
  /// `places`: of the ranks that are asked about, in the family's numbering.
  FamilyFarewells(std::shared_ptr<const FamilyPeers> peers, std::vector<int> places)
      : peers_(std::move(peers)), places_(std::move(places)) {}
  bool hasLeft(int peer) const override;
  std::string exitOf(int peer) const override;

 private:
  std::shared_ptr<const FamilyPeers> peers_;
  std::vector<int> places_;
};

}  // namespace tutti::comm
