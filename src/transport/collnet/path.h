// Names of a head's connection to a network that reduces, for messages.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "topo/machine/peer_info.h"

namespace tutti::collnet {

/// How a head gets to the network.
struct CollNetPath {
  topo::PeerInfo self;
  int rail = 0;
  std::string description;  ///< "COLLNET/Fake/0"
  /// "rail 0 by COLLNET/Fake/0".
  std::string brief() const;
  /// "CollNet of rank 0 (host a, device 0), rail 0 by COLLNET/Fake/0".
  std::string text() const;
};

/// The error of a call of the network: whose, over what, `call` (for people: "listen"), what the network has said.
Status failCollNet(const CollNetPath& path, Status cause, std::string_view call);

}  // namespace tutti::collnet
