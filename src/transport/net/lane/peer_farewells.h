// Whether peers have left in peace: what the network then says of connections to them is no failure.
#pragma once

#include <string>

namespace tutti::net {

/// Threads: asked by any, at any time, also by several at once; must neither wait nor fail. Ownership: connections
/// share it, and ask it until they are closed. What an implementation looks at has to live as long.
class PeerFarewells {
 public:
  virtual ~PeerFarewells() = default;
  /// Once true, true for ever.
  virtual bool hasLeft(int peer) const = 0;
  /// Of a peer that has only left because its process has ended: a sentence that says so. Empty of all others.
  virtual std::string exitOf(int /*peer*/) const { return {}; }
};

}  // namespace tutti::net
