// One end of a P2P connection.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "gpu/memory.h"
#include "transport/common/pull_window.h"
#include "transport/common/self_test.h"
#include "transport/common/transport.h"
#include "transport/p2p/layout.h"
#include "transport/p2p/memory.h"
#include "transport/p2p/peer.h"

namespace tutti::p2p {

/// Both sides: an allocation of our own, the peer's once connected, and what is written where. See transport.h.
class P2pEndpoint final : public transport::Endpoint {
 public:
  /// `pulls`: the receiver may read the sender's memory where the sender has a window; both sides must say the same.
  /// `deviceOwner`, which may be null, keeps the device alive; `ledger`, too, counts the memory.
  static Result<std::unique_ptr<transport::Endpoint>> open(const gpu::Device& device, const transport::LinkSpec& link,
                                                           device::Direction direction, bool pulls,
                                                           std::shared_ptr<const void> deviceOwner = {},
                                                           std::shared_ptr<gpu::MemoryLedger> ledger = {});
  ~P2pEndpoint() override;
  transport::ConnectHandle handle() const override;
  Status connect(const transport::ConnectHandle& peer) override;
  Status probeWrite() override;
  Result<bool> probeCheck() override;
  transport::ConnView view() const override;
  void settle() override { settled_ = true; }
  void detach() override;
  std::string_view description() const override;

 private:
  P2pEndpoint(const transport::LinkSpec& link, device::Direction direction, std::shared_ptr<SharedMemory> own)
      : link_(link), direction_(direction), own_(std::move(own)) {}
  const gpu::DeviceBuffer& own() const { return own_->buffer(); }
  Status describe(const gpu::Device& device, bool pulls);
  Status checkHandle(const WireHandle& peer) const;
  Status requireConnected(const char* what) const;
  transport::SelfTest selfTest() const;

  transport::LinkSpec link_;
  device::Direction direction_;
  std::shared_ptr<SharedMemory> own_;
  bool settled_ = false;
  WireHandle wire_;
  PeerMemory peer_;
  transport::PullWindow window_;
};

}  // namespace tutti::p2p
