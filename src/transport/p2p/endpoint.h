// One end of a P2P connection.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "transport/common/pull_window.h"
#include "transport/common/self_test.h"
#include "transport/common/transport.h"
#include "transport/p2p/layout.h"
#include "transport/p2p/memory.h"
#include "transport/p2p/peer.h"
#include "transport/p2p/slabs.h"

namespace tutti::p2p {

/// Both sides: memory of our own, the peer's once connected, and what is written where. See transport.h.
class P2pEndpoint final : public transport::Endpoint {
 public:
  /// `pulls`: the receiver may read the sender's memory where the sender has a window; both sides must say the same.
  static Result<std::unique_ptr<transport::Endpoint>> open(std::shared_ptr<Slabs> slabs,
                                                           const transport::LinkSpec& link, device::Direction direction,
                                                           bool pulls);
  ~P2pEndpoint() override;
  transport::ConnectHandle handle() const override;
  Status connect(const transport::ConnectHandle& peer) override;
  Result<bool> ready() override { return peer_.advance(); }
  Status probeWrite() override;
  Result<bool> probeCheck() override;
  transport::ConnView view() const override;
  void settle() override { settled_ = true; }
  void detach() override;
  std::string_view description() const override;

 private:
  P2pEndpoint(const transport::LinkSpec& link, device::Direction direction, std::shared_ptr<Slabs> slabs,
              std::shared_ptr<SharedMemory> own)
      : link_(link), direction_(direction), slabs_(std::move(slabs)), own_(std::move(own)) {}
  Status describe(bool pulls);
  Status checkHandle(const WireHandle& peer) const;
  Status requireConnected(const char* what) const;
  transport::SelfTest selfTest() const;

  transport::LinkSpec link_;
  device::Direction direction_;
  std::shared_ptr<Slabs> slabs_;
  std::shared_ptr<SharedMemory> own_;
  bool settled_ = false;
  Sharing dataSharing_ = Sharing::Address;  ///< of the receiver's memory, once that is known
  WireHandle wire_;
  PeerMemory peer_;
  transport::PullWindow window_;
};

}  // namespace tutti::p2p
