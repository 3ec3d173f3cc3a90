// SHM: ranks of one host whose devices cannot reach each other meet in host memory that both can.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "transport/common/transport.h"
#include "transport/shm/options.h"

namespace tutti::gpu {
class Device;
class MemoryLedger;
}  // namespace tutti::gpu

namespace tutti::shm {

struct Surroundings;

/// See transport.h. `device` must outlive the transport and its endpoints.
class ShmTransport final : public transport::Transport {
 public:
  /// `deviceOwner`, which may be null, keeps the device for memory that has to outlive the transport after a failure.
  /// `ledger`, which may be null, counts the device memory of its ends.
  ShmTransport(const gpu::Device& device, ShmOptions options, std::shared_ptr<const void> deviceOwner = {},
               std::shared_ptr<gpu::MemoryLedger> ledger = {});
  ~ShmTransport() override;
  std::string_view name() const override { return "SHM"; }
  Result<bool> reachable(const topo::PeerInfo& self, const topo::PeerInfo& peer) const override;
  std::string whyNot(const topo::PeerInfo& self, const topo::PeerInfo& peer) const override;
  Result<transport::LinkQuality> judge(const topo::PeerInfo& self, const topo::PeerInfo& peer) const override;
  Result<std::unique_ptr<transport::Endpoint>> openSend(const transport::LinkSpec& link) override;
  Result<std::unique_ptr<transport::Endpoint>> openRecv(const transport::LinkSpec& link) override;

 private:
  ShmOptions options_;
  std::unique_ptr<const Surroundings> around_;
};

}  // namespace tutti::shm
