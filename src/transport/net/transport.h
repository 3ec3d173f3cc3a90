// NET: both ends keep their slots to themselves, and a host thread at each moves what is in them over a network.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "device/direction.h"
#include "gpu/context.h"
#include "plugin/network/net.h"
#include "transport/common/transport.h"
#include "transport/net/lane/options.h"

namespace tutti::net {

namespace pxn {
class LentPools;
}

/// Of a family, for NetFamily::commons.
std::shared_ptr<NetCommons> makeNetCommons();

/// See transport.h. `device` and `net` must outlive the transport and its endpoints. It can join any two ranks, so it
/// belongs at the end of the list.
class NetTransport final : public transport::Transport {
 public:
  NetTransport(const gpu::Device& device, plugin::Net& net, NetTransportOptions options);
  std::string_view name() const override { return "NET"; }
  Result<bool> reachable(const topo::PeerInfo& self, const topo::PeerInfo& peer) const override;
  std::string whyNot(const topo::PeerInfo& self, const topo::PeerInfo& peer) const override;
  /// Lines of LL128 are written by the host in order. A kernel of the software GPU sees them so, and host threads see
  /// those of such a kernel; nobody promises that of a GPU and host memory.
  Result<transport::LinkQuality> judge(const topo::PeerInfo& self, const topo::PeerInfo& peer) const override;
  bool proxied() const override { return true; }
  bool callsFirst() const override { return true; }
  Result<std::unique_ptr<transport::Endpoint>> openSend(const transport::LinkSpec& link) override;
  Result<std::unique_ptr<transport::Endpoint>> openRecv(const transport::LinkSpec& link) override;

 private:
  Result<std::unique_ptr<transport::Endpoint>> open(const transport::LinkSpec& link, device::Direction direction);
  const gpu::Device* device_;
  plugin::Net* net_;
  NetTransportOptions options_;
  std::shared_ptr<NetCommons> commons_;
  std::shared_ptr<pxn::LentPools> lent_;
};

}  // namespace tutti::net
