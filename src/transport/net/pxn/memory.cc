#include "transport/net/pxn/memory.h"

#include <algorithm>

#include "transport/net/lane/counters.h"
#include "transport/net/send/flagged.h"

namespace tutti::net::pxn {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kNetworkConnections = 2;
static_assert(sizeof(PxnStatusPage) <= kPage);

constexpr std::size_t roundedUp(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

Layout layoutOf(const device::SlotBytes& slotBytes, bool slotsElsewhere) {
  Layout layout;
  layout.tail = kPage;
  layout.head = layout.tail + device::kCountersBytes;
  layout.words = layout.head + device::kCountersBytes;
  layout.probes = layout.words + sizeof(device::SendWords);
  layout.messages = layout.probes + kNetworkConnections * kProbeRoom;
  std::size_t end = layout.messages + net::senderMessageBytes(slotBytes);
  for (std::size_t p = 0; p < slotBytes.size(); ++p) {
    const bool elsewhere = slotsElsewhere && p == static_cast<std::size_t>(device::Protocol::Simple);
    if (slotBytes[p] == 0 || elsewhere) continue;
    layout.slots[p] = roundedUp(end, kPage);
    end = layout.slots[p] + std::size_t{slotBytes[p]} * device::kSteps;
  }
  layout.bytes = roundedUp(end, kPage);
  return layout;
}

device::SendConn viewOf(const Layout& layout, const device::SlotBytes& slotBytes, std::byte* base, std::byte* steps) {
  device::SendConn view{};
  for (std::size_t p = 0; p < slotBytes.size(); ++p) {
    view.slotBytes[p] = slotBytes[p];
    if (layout.slots[p] != 0) view.slots[p] = base + layout.slots[p];
  }
  view.tail = reinterpret_cast<device::Counter*>(base + layout.tail);
  view.head = reinterpret_cast<device::Counter*>(base + layout.head);
  view.step = reinterpret_cast<device::Counter*>(steps);
  view.words = reinterpret_cast<device::SendWords*>(base + layout.words);
  return view;
}

bool allSettled(const device::SendConn& view, const PxnStatusPage& status) {
  for (std::size_t p = 0; p < device::kProtocols; ++p) {
    if (view.slotBytes[p] == 0) continue;
    const auto protocol = static_cast<device::Protocol>(p);
    const std::uint64_t settled = read(status.settled[p]);
    if (protocol == device::Protocol::Simple) {
      if (net::loadCounter(view.tailOf(protocol)) != settled) return false;
      continue;
    }
    const std::uint64_t word = net::loadCounter(view.words->size[p].of(settled));
    if (device::isSizeOf(word, settled)) return false;
  }
  return true;
}

std::uint64_t packed(const net::LaneFacts& facts) {
  return std::uint64_t{facts.bytes} << 32 | static_cast<std::uint64_t>(facts.protocol) << 8 |
         static_cast<std::uint64_t>(facts.wait);
}

/// Another process may have written anything.
net::LaneFacts factsOf(std::uint64_t packed, std::uint64_t step) {
  const std::uint64_t wait = std::min(packed & 0xff, static_cast<std::uint64_t>(net::LaneWait::Delivery));
  const std::uint64_t protocol = std::min(packed >> 8 & 0xff, std::uint64_t{device::kProtocols - 1});
  return {static_cast<device::Protocol>(protocol), static_cast<net::LaneWait>(wait),
          static_cast<std::uint32_t>(packed >> 32), step};
}

}  // namespace tutti::net::pxn
