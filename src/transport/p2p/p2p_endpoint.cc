#include "transport/p2p/p2p_endpoint.h"

#include <fmt/format.h>

#include <cstring>
#include <span>

#include "base/log.h"

namespace tutti::p2p {

Result<std::unique_ptr<Endpoint>> P2pEndpoint::open(const Device& device, const LinkSpec& link, Side side,
                                                    bool pulls, std::shared_ptr<const void> deviceOwner) {
  const std::size_t bytes = side == Side::Sender ? kSenderBytes : receiverLayout(link.slotBytes).bytes;
  const std::string about = fmt::format("P2P channel {}, {}", link.channel, pairText(link.self, link.peer));
  ASSIGN(auto own, SharedMemory::create(device, bytes, about, std::move(deviceOwner)));
  std::unique_ptr<P2pEndpoint> endpoint(new P2pEndpoint(link, side, std::move(own)));
  TRY(endpoint->describe(device, pulls));
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

Status P2pEndpoint::describe(const Device& device, bool pulls) {
  WireHandle& wire = wire_;
  wire.magic = kWireMagic;
  wire.side = side_;
  wire.address = own().address();
  wire.bytes = own().size();
  wire.rank = link_.self.rank;
  wire.peerRank = link_.peer.rank;
  wire.channel = link_.channel;
  wire.slotBytes = link_.slotBytes;
  wire.pulls = pulls ? 1 : 0;
  if (!sameProcess(link_.self, link_.peer)) {
    ASSIGN(wire.ipc, IpcMemory::exportHandle(own()));
  }
  if (side_ == Side::Sender && pulls) {
    ASSIGN(window_, memoryWindow(device));
    wire.window = window_;
  }
  return {};
}

P2pEndpoint::~P2pEndpoint() {
  if (settled_) own_->free();
}

ConnectHandle P2pEndpoint::handle() const {
  ConnectHandle handle;
  std::memcpy(handle.bytes.data(), &wire_, sizeof(wire_));
  return handle;
}

Status P2pEndpoint::checkHandle(const WireHandle& peer) const {
  if (peer.magic != kWireMagic || peer.side == side_ || peer.rank != link_.peer.rank ||
      peer.peerRank != link_.self.rank || peer.channel != link_.channel) {
    return fail(ncclInternalError,
                "P2P handle does not belong to channel {} of {}: it is from rank {} for rank {}, channel {}; do all "
                "ranks use the same library and settings?",
                link_.channel, pairText(link_.self, link_.peer), peer.rank, peer.peerRank, peer.channel);
  }
  const std::uint64_t expected = side_ == Side::Sender ? layout_.bytes : kSenderBytes;
  if (peer.slotBytes != link_.slotBytes || peer.bytes != expected) {
    return fail(ncclInvalidUsage,
                "Buffer sizes differ on channel {} of {}: set NCCL_BUFFSIZE, NCCL_LL_BUFFSIZE and NCCL_LL128_BUFFSIZE "
                "alike on all ranks",
                link_.channel, pairText(link_.self, link_.peer));
  }
  if (peer.pulls != wire_.pulls) {
    return fail(ncclInvalidUsage,
                "Only one side of channel {} of {} reads the peer's buffers in place: set NCCL_P2P_DIRECT_DISABLE alike "
                "on all ranks",
                link_.channel, pairText(link_.self, link_.peer));
  }
  return {};
}

Status P2pEndpoint::openWindow(const MemoryWindow& senders) {
  if (senders.bytes == 0) return {};
  if (!sameProcess(link_.self, link_.peer)) {
    ASSIGN(IpcMemory mapping, IpcMemory::open(own().device(), senders.ipc,
                                              fmt::format("{} at {}", rankText(link_.peer), rankText(link_.self))));
    pullShift_ = static_cast<std::int64_t>(mapping.address() - senders.base);
    windowMapping_.emplace(std::move(mapping));
  }
  window_ = senders;
  return {};
}

Status P2pEndpoint::connect(const ConnectHandle& peer) {
  WireHandle wire;
  std::memcpy(&wire, peer.bytes.data(), sizeof(wire));
  TRY(checkHandle(wire));
  ASSIGN(peer_, PeerMemory::open(own().device(), link_.self, link_.peer, wire));
  if (side_ == Side::Receiver) TRY(openWindow(wire.window));
  return {};
}

Status P2pEndpoint::requireConnected(const char* what) const {
  if (peer_.address() != 0) return {};
  return fail(ncclInternalError, "{} before connect on P2P channel {} of {}", what, link_.channel,
              pairText(link_.self, link_.peer));
}

std::uint64_t P2pEndpoint::pattern(int writer, int reader) const {
  // Differs per writer, reader and channel, so that crossed mappings do not pass; never zero.
  const std::uint64_t ranks = static_cast<std::uint64_t>(writer) << 32 | static_cast<std::uint32_t>(reader);
  return (ranks * 0x9e3779b97f4a7c15ULL ^ (static_cast<std::uint64_t>(link_.channel) << 8)) | 1;
}

namespace {

std::span<const std::byte> bytesOf(const std::uint64_t& value) { return std::as_bytes(std::span(&value, 1)); }

/// What is written for one protocol; another one than for its neighbours.
std::uint64_t valueFor(std::uint64_t pattern, std::size_t p) { return pattern + 2 * (p + 1); }

std::size_t counterOffset(std::size_t p) { return kCounterOffset + p * device::kCounterStride * sizeof(std::uint64_t); }

/// Where the probe touches the slots of one protocol: their first and their last eight bytes.
std::array<std::size_t, 2> probePoints(const ReceiverLayout& layout, const SlotBytes& slotBytes, std::size_t p) {
  const std::size_t bytes = std::size_t{slotBytes[p]} * device::kSteps;
  return {layout.slots[p], layout.slots[p] + bytes - sizeof(std::uint64_t)};
}

}  // namespace

Status P2pEndpoint::writeSlots(std::uint64_t value, std::size_t p) const {
  for (const std::size_t point : probePoints(layout_, link_.slotBytes, p)) {
    TRY(copyToDevice(own().device(), peer_.address() + point, bytesOf(value)));
  }
  return {};
}

Status P2pEndpoint::probeWrite() {
  TRY(requireConnected("probe"));
  for (std::size_t p = 0; p < link_.slotBytes.size(); ++p) {
    if (link_.slotBytes[p] == 0) continue;
    const std::uint64_t value = valueFor(pattern(link_.self.rank, link_.peer.rank), p);
    if (side_ == Side::Sender) TRY(writeSlots(value, p));
    TRY(copyToDevice(own().device(), peer_.address() + counterOffset(p), bytesOf(value)));
  }
  return {};
}

Result<bool> P2pEndpoint::checkAndClear(CUdeviceptr address, std::uint64_t expected, std::size_t p,
                                        const char* what) const {
  constexpr std::array<const char*, device::kProtocols> kNames{"LL", "LL128", "Simple"};
  std::uint64_t found = 0;
  TRY(copyToHost(own().device(), std::as_writable_bytes(std::span(&found, 1)), address));
  TRY(zeroDevice(own().device(), address, sizeof(found)));
  if (found == expected) return true;
  warn("P2P self-test of channel {}, {}: the {} {} holds {:#x} instead of the peer's {:#x}. Likely causes: an IOMMU or "
       "PCI access control (ACS) between the devices drops writes, or a handle was mixed up and it wrote elsewhere",
       link_.channel, pairText(link_.self, link_.peer), kNames[p], what, found, expected);
  return false;
}

Result<bool> P2pEndpoint::checkSlots(std::uint64_t value, std::size_t p) const {
  bool good = true;
  for (const std::size_t point : probePoints(layout_, link_.slotBytes, p)) {
    ASSIGN(const bool arrived, checkAndClear(own().address() + point, value, p, "slot"));
    good = good && arrived;
  }
  return good;
}

Result<bool> P2pEndpoint::probeCheck() {
  TRY(requireConnected("probe"));
  bool good = true;
  for (std::size_t p = 0; p < link_.slotBytes.size(); ++p) {
    if (link_.slotBytes[p] == 0) continue;
    const std::uint64_t value = valueFor(pattern(link_.peer.rank, link_.self.rank), p);
    if (side_ == Side::Receiver) {
      ASSIGN(const bool slots, checkSlots(value, p));
      good = good && slots;
    }
    ASSIGN(const bool counter, checkAndClear(own().address() + counterOffset(p), value, p, "counter"));
    good = good && counter;
  }
  return good;
}

device::ConnView P2pEndpoint::view() const {
  const bool sends = side_ == Side::Sender;
  std::byte* const mine = own().data();
  std::byte* const peer = reinterpret_cast<std::byte*>(peer_.address());
  std::byte* const receiver = sends ? peer : mine;
  std::byte* const sender = sends ? mine : peer;
  device::ConnView view{};
  for (std::size_t p = 0; p < link_.slotBytes.size(); ++p) {
    view.slotBytes[p] = link_.slotBytes[p];
    view.slots[p] = link_.slotBytes[p] == 0 ? nullptr : receiver + layout_.slots[p];
  }
  view.tail = reinterpret_cast<std::uint64_t*>(receiver + kCounterOffset);
  view.head = reinterpret_cast<std::uint64_t*>(sender + kCounterOffset);
  view.step = reinterpret_cast<std::uint64_t*>(mine + kStepOffset);
  if (window_.bytes == 0) return view;
  view.pullFrom = reinterpret_cast<std::uint64_t*>(receiver + kPullOffset);
  view.pullBase = sends ? window_.base : 0;
  view.pullBytes = sends ? window_.bytes : 0;
  view.pullShift = pullShift_;
  view.pullLeast = device::kPullLeast;
  return view;
}

std::string_view P2pEndpoint::description() const {
  return sameProcess(link_.self, link_.peer) ? "P2P/direct pointer" : "P2P/IPC";
}

}  // namespace tutti::p2p
