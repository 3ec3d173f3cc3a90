// P2P: the sender writes straight into the receiver's device memory, by pointer in one process, mapped across.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "gpu/context.h"
#include "transport/common/transport.h"
#include "transport/p2p/options.h"

namespace tutti::gpu {
class MemoryLedger;
}  // namespace tutti::gpu

namespace tutti::p2p {

class Slabs;

/// See transport.h. `device` must outlive the transport and its endpoints.
class P2pTransport final : public transport::Transport {
 public:
  /// `deviceOwner`, which may be null, keeps the device for memory that has to outlive the transport after a failure.
  /// `ledger`, which may be null, counts the memory of its ends.
  P2pTransport(const gpu::Device& device, P2pOptions options, std::shared_ptr<const void> deviceOwner = {},
               std::shared_ptr<gpu::MemoryLedger> ledger = {});
  ~P2pTransport() override;
  std::string_view name() const override { return "P2P"; }
  Result<bool> reachable(const topo::PeerInfo& self, const topo::PeerInfo& peer) const override;
  std::string whyNot(const topo::PeerInfo& self, const topo::PeerInfo& peer) const override;
  Result<transport::LinkQuality> judge(const topo::PeerInfo& self, const topo::PeerInfo& peer) const override;
  Result<std::unique_ptr<transport::Endpoint>> openSend(const transport::LinkSpec& link) override;
  Result<std::unique_ptr<transport::Endpoint>> openRecv(const transport::LinkSpec& link) override;

 private:
  Result<std::string> deviceObstacle(const topo::PeerInfo& self, const topo::PeerInfo& peer) const;
  Result<std::string> commonObstacle(const topo::PeerInfo& self, const topo::PeerInfo& peer) const;
  bool joinedByNvlink(const topo::PeerInfo& self, const topo::PeerInfo& peer) const;
  /// Whether an end of the link may be opened; the error names both ranks.
  Status checkLink(const transport::LinkSpec& link) const;
  /// Whether receivers read in place.
  bool pulls() const;

  const gpu::Device* device_;
  P2pOptions options_;
  std::shared_ptr<Slabs> slabs_;
  Result<gpu::DeviceIndex> visible_;  ///< asked once: there may be as many questions as pairs of ranks
};

}  // namespace tutti::p2p
