#include "transport/shm/endpoint.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "base/log.h"
#include "gpu/memory_ledger.h"
#include "transport/common/ranks.h"
#include "transport/shm/numa.h"

namespace tutti::shm {

Result<std::unique_ptr<transport::Endpoint>> ShmEndpoint::open(const Surroundings& around,
                                                               const transport::LinkSpec& link,
                                                               device::Direction direction) {
  const std::string steps =
      fmt::format("counters of SHM channel {}, {}", link.channel, transport::pairText(link.self, link.peer));
  ASSIGN(gpu::DeviceBuffer buffer,
         gpu::DeviceBuffer::create(*around.device, transport::kCountersBytes, {steps, around.ledger}));
  std::unique_ptr<ShmEndpoint> endpoint(new ShmEndpoint(around, link, direction, std::move(buffer)));
  TRY(endpoint->createOwn());
  return std::unique_ptr<transport::Endpoint>(std::move(endpoint));
}

ShmEndpoint::~ShmEndpoint() {
  if (wire_.ticket != transport::Ticket{}) around_.server->withdraw(wire_.ticket);
}

std::string ShmEndpoint::about() const {
  return fmt::format("SHM channel {}, {}", link_.channel, transport::pairText(link_.self, link_.peer));
}

Status ShmEndpoint::createOwn() {
  ASSIGN(Segment segment, Segment::create(wire_.bytes, numaNodeOf(device()), about()));
  ASSIGN(own_, Region::create(device(), std::move(segment), about(), around_.deviceOwner));
  if (around_.pulls && wire_.direction == device::Direction::Send) {
    ASSIGN(proposed_, transport::PullWindow::ofSender(device()));
    wire_.window = proposed_.window();
  }
  wire_.address = reinterpret_cast<std::uintptr_t>(own_->host());
  Fd descriptor = own_->takeDescriptor();
  if (transport::sameProcess(link_.self, link_.peer)) return {};
  ASSIGN(wire_.ticket, around_.server->offer(std::move(descriptor)));
  return {};
}

transport::ConnectHandle ShmEndpoint::handle() const {
  transport::ConnectHandle handle;
  std::memcpy(handle.bytes.data(), &wire_, sizeof(wire_));
  return handle;
}

Status ShmEndpoint::connect(const transport::ConnectHandle& peer) {
  std::memcpy(&peerWire_, peer.bytes.data(), sizeof(peerWire_));
  TRY(transport::checkIdentity("SHM", link_, wire_, peerWire_));
  if (!transport::sameProcess(link_.self, link_.peer)) {
    fetch_.emplace(peerWire_.ticket, Deadline::in(around_.patience));
    return {};
  }
  peer_ = Region::at(peerWire_.address);
  if (peer_ == nullptr) {
    return fail(ncclRemoteError,
                "The memory of {} is gone, which {} connects to: that rank has given the connection up. Look "
                "for its own first error",
                transport::rankText(link_.peer), transport::rankText(link_.self));
  }
  ASSIGN(peerOnDevice_, gpu::addressOnDevice(device(), peer_->host()));
  return answer();
}

Status ShmEndpoint::answer() {
  if (wire_.direction == device::Direction::Send || peerWire_.window.bytes == 0) return {};
  if (around_.pulls) {
    std::string why;
    ASSIGN(window_, transport::PullWindow::openIfAllowed(device(), link_, peerWire_.window, why));
    if (window_.empty()) {
      info(kShm, "{}: the sender's memory cannot be mapped ({}), so everything goes through slots", about(), why);
    }
  }
  const auto reply = window_.empty() ? WindowAnswer::ReadsNot : WindowAnswer::Reads;
  auto* const word = reinterpret_cast<std::uint64_t*>(peer_->host() + kAnswerOffset);
  std::atomic_ref(*word).store(static_cast<std::uint64_t>(reply), std::memory_order_release);
  return {};
}

bool ShmEndpoint::answered() {
  if (proposed_.empty()) return true;
  auto* const word = reinterpret_cast<std::uint64_t*>(own_->host() + kAnswerOffset);
  const auto reply = static_cast<WindowAnswer>(std::atomic_ref(*word).load(std::memory_order_acquire));
  if (reply == WindowAnswer::None) return false;
  if (reply == WindowAnswer::Reads) window_ = std::move(proposed_);
  proposed_ = {};
  return true;
}

Result<bool> ShmEndpoint::ready() {
  ASSIGN(const bool peerIsHere, fetched());
  return peerIsHere && answered();
}

Result<bool> ShmEndpoint::fetched() {
  if (!fetch_) return peerOnDevice_ != nullptr;
  switch (fetch_->advance()) {
    case transport::FetchState::Pending:
      return false;
    case transport::FetchState::Done:
      break;
    case transport::FetchState::Failed: {
      const std::string why = fetch_->why();
      fetch_.reset();
      return fail(ncclRemoteError,
                  "{}: the peer's memory could not be fetched: {}. NCCL_SHM_DISABLE=1 does without shared "
                  "memory",
                  about(), why);
    }
  }
  Fd descriptor = fetch_->take();
  fetch_.reset();
  TRY(adoptPeer(std::move(descriptor)));
  return true;
}

Status ShmEndpoint::adoptPeer(Fd fd) {
  ASSIGN(Segment segment, Segment::adopt(std::move(fd), peerWire_.bytes, about()));
  ASSIGN(peer_, Region::create(device(), std::move(segment), about(), around_.deviceOwner));
  peerOnDevice_ = peer_->onDevice();
  return answer();
}

Status ShmEndpoint::requireConnected() const {
  if (peerOnDevice_ != nullptr) return {};
  return fail(ncclInternalError, "Self-test before the end of connecting on {}", about());
}

transport::SelfTest ShmEndpoint::selfTest() const {
  return {"SHM",
          &device(),
          &link_,
          wire_.direction,
          reinterpret_cast<CUdeviceptr>(own_->onDevice()),
          reinterpret_cast<CUdeviceptr>(peerOnDevice_)};
}

Status ShmEndpoint::probeWrite() {
  TRY(requireConnected());
  return selfTest().write();
}

Result<bool> ShmEndpoint::probeCheck() {
  TRY(requireConnected());
  return selfTest().check();
}

transport::ConnView ShmEndpoint::view() const {
  return transport::connView(wire_.direction, link_.slotBytes, {own_->onDevice(), peerOnDevice_, steps_.data()},
                             window_);
}

}  // namespace tutti::shm
