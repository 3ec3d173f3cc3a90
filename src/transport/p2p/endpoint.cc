#include "transport/p2p/endpoint.h"

#include <cstring>

#include "base/log.h"
#include "transport/common/fifo_layout.h"
#include "transport/common/ranks.h"

namespace tutti::p2p {

Result<std::unique_ptr<transport::Endpoint>> P2pEndpoint::open(std::shared_ptr<Slabs> slabs,
                                                               const transport::LinkSpec& link,
                                                               device::Direction direction, bool pulls) {
  ASSIGN(auto own, slabs->take(link, direction, transport::sharedBytes(direction, link.slotBytes)));
  std::unique_ptr<P2pEndpoint> endpoint(new P2pEndpoint(link, direction, std::move(slabs), std::move(own)));
  TRY(endpoint->describe(pulls));
  return std::unique_ptr<transport::Endpoint>(std::move(endpoint));
}

Status P2pEndpoint::describe(bool pulls) {
  WireHandle& wire = wire_;
  static_cast<transport::LinkIdentity&>(wire) = transport::identityOf(link_, direction_, kWireMagic);
  wire.address = own_->address();
  wire.slab = own_->slab();
  dataSharing_ = wire.slab.sharing;
  wire.offset = own_->offset();
  wire.pulls = pulls ? 1 : 0;
  if (direction_ == device::Direction::Send && pulls) {
    ASSIGN(window_, transport::PullWindow::ofSender(own_->device()));
    wire.window = window_.window();
  }
  return {};
}

P2pEndpoint::~P2pEndpoint() {
  if (settled_) own_->free();
}

void P2pEndpoint::detach() {
  peer_ = {};
  window_ = {};
}

transport::ConnectHandle P2pEndpoint::handle() const {
  transport::ConnectHandle handle;
  std::memcpy(handle.bytes.data(), &wire_, sizeof(wire_));
  return handle;
}

Status P2pEndpoint::checkHandle(const WireHandle& peer) const {
  TRY(transport::checkIdentity("P2P", link_, wire_, peer));
  if (peer.pulls != wire_.pulls) {
    return fail(
        ncclInvalidUsage,
        "Only one side of channel {} of {} reads the peer's buffers in place: set NCCL_P2P_DIRECT_DISABLE alike "
        "on all ranks",
        link_.channel, transport::pairText(link_.self, link_.peer));
  }
  return {};
}

Status P2pEndpoint::connect(const transport::ConnectHandle& peer) {
  WireHandle wire;
  std::memcpy(&wire, peer.bytes.data(), sizeof(wire));
  TRY(checkHandle(wire));
  ASSIGN(peer_, PeerMemory::open(own_->device(), link_, wire, *slabs_));
  if (direction_ == device::Direction::Send) dataSharing_ = wire.slab.sharing;
  if (direction_ == device::Direction::Recv) {
    ASSIGN(window_, transport::PullWindow::open(own_->device(), link_, wire.window));
  }
  return {};
}

Status P2pEndpoint::requireConnected(const char* what) const {
  if (peer_.address() != 0) return {};
  return fail(ncclInternalError, "{} before the end of connecting on P2P channel {} of {}", what, link_.channel,
              transport::pairText(link_.self, link_.peer));
}

transport::SelfTest P2pEndpoint::selfTest() const {
  return {"P2P", &own_->device(), &link_, direction_, own_->address(), peer_.address()};
}

Status P2pEndpoint::probeWrite() {
  TRY(requireConnected("probe"));
  return selfTest().write();
}

Result<bool> P2pEndpoint::probeCheck() {
  TRY(requireConnected("probe"));
  return selfTest().check();
}

transport::ConnView P2pEndpoint::view() const {
  std::byte* const mine = own_->data();
  auto* const peer = reinterpret_cast<std::byte*>(peer_.address());
  return transport::connView(direction_, link_.slotBytes, {mine, peer, mine + transport::kStepOffset}, window_);
}

std::string_view P2pEndpoint::description() const {
  switch (dataSharing_) {
    case Sharing::Address:
      return "P2P/direct pointer";
    case Sharing::Ipc:
      return "P2P/IPC";
    case Sharing::Descriptor:
      return "P2P/CUMEM";
  }
  return {};
}

}  // namespace tutti::p2p
