// Ranks that others of their host send through (PXN, docs/network.md): who they are, and how long they stay.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "topo/machine/peer_info.h"

namespace tutti::bootstrap {
class Bootstrap;
}
namespace tutti::net::pxn {
class RelayService;
}
namespace tutti::topo {
class RankLayout;
}

namespace tutti::comm {

class CommNetwork;
struct PooledDevice;

/// What the ranks of a communicator know each other by at relays.
std::array<std::byte, 32> relaySecret(const bootstrap::Bootstrap& bootstrap);

/// The rank with that number within our node, if we can send through it; null: we cannot, or `localRank` is -1.
/// `peers`: all ranks, ours among them.
const topo::PeerInfo* relayOf(const topo::RankLayout& layout, std::span<const topo::PeerInfo> peers, int localRank);

/// What a rank brings along.
struct RelayMember {
  const bootstrap::Bootstrap& bootstrap;
  std::shared_ptr<PooledDevice> device;
  std::shared_ptr<CommNetwork> network;  ///< null: there is none to send through
  std::span<const topo::PeerInfo> peers;
  int rank = 0;
  bool relaysForOthers = false;  ///< others send through this rank, as the machine says
};

/// A rank's membership in its communicator, as far as relays go: it may be one, and has others of its process beside
/// it.
class RankRelays {
 public:
  /// Listens, if the machine says that others send through this rank. Before any rank may connect.
  static Result<std::unique_ptr<RankRelays>> join(const RelayMember& member);
  RankRelays(const RankRelays&) = delete;
  /// Without leave(): ends what others have here at once.
  ~RankRelays();

  /// The rank has ended in order, and its own connections are closed. Others may go on sending through it for as long
  /// as the process lives; the last rank of the communicator in this process, after which it may end, waits for them,
  /// `kPatience` at most.
  void leave();
  static constexpr int kPatienceSeconds = 10;

  /// Whether anybody sends through this rank. Any thread.
  bool serves() const;
  /// Connections of others over which something has not come through yet (pxn::PxnConnections). Any thread.
  std::vector<std::string> underWay() const;

 private:
  explicit RankRelays(std::uint64_t commHash) : commHash_(commHash) {}
  std::uint64_t commHash_;
  bool counted_ = false;
  std::shared_ptr<net::pxn::RelayService> service_;  ///< null: nobody sends through us
};

}  // namespace tutti::comm
