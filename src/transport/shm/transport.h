// SHM: ranks of one host whose devices cannot reach each other meet in host memory that both can.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "gpu/context.h"
#include "transport/shm/endpoint.h"
#include "transport/shm/options.h"
#include "transport/common/transport.h"

namespace tutti {

/// See transport.h. `device` must outlive the transport and its endpoints.
class ShmTransport final : public Transport {
 public:
  /// `deviceOwner`, which may be null, keeps the device for memory that has to outlive the transport after a failure.
  ShmTransport(const Device& device, ShmOptions options, std::shared_ptr<const void> deviceOwner = {})
      : options_(options),
        around_{&device, std::move(deviceOwner), std::make_shared<shm::FdServer>(), options.patience, !options.directDisabled} {}
  std::string_view name() const override { return "SHM"; }
  Result<bool> reachable(const PeerInfo& self, const PeerInfo& peer) const override;
  std::string whyNot(const PeerInfo& self, const PeerInfo& peer) const override;
  Result<LinkQuality> judge(const PeerInfo& self, const PeerInfo& peer) const override;
  Result<std::unique_ptr<Endpoint>> openSend(const LinkSpec& link) override;
  Result<std::unique_ptr<Endpoint>> openRecv(const LinkSpec& link) override;

 private:
  ShmOptions options_;
  shm::Surroundings around_;
};

}  // namespace tutti
