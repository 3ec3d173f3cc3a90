#include "transport/net/relay/relay_memory.h"

#include "transport/net/net_sender.h"

namespace tutti::relay {
namespace {

constexpr std::size_t kCountersBytes = device::kProtocols * device::kCounterStride * sizeof(std::uint64_t);
constexpr std::size_t kPage = 4096;
constexpr std::size_t kNetworkConnections = 2;
static_assert(sizeof(Board) <= kPage);

constexpr std::size_t roundedUp(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

Layout layoutOf(const device::SlotBytes& slotBytes) {
  Layout layout;
  layout.tail = kPage;
  layout.head = layout.tail + kCountersBytes;
  layout.sizes = layout.head + kCountersBytes;
  layout.probes = layout.sizes + device::kSizesWords * sizeof(std::uint64_t);
  layout.messages = layout.probes + kNetworkConnections * kProbeRoom;
  std::size_t end = layout.messages + net::senderMessageBytes(slotBytes);
  for (std::size_t p = 0; p < slotBytes.size(); ++p) {
    if (slotBytes[p] == 0) continue;
    layout.slots[p] = roundedUp(end, kPage);
    end = layout.slots[p] + std::size_t{slotBytes[p]} * device::kSteps;
  }
  layout.bytes = roundedUp(end, kPage);
  return layout;
}

device::ConnView viewOf(const Layout& layout, const device::SlotBytes& slotBytes, std::byte* base, std::byte* steps) {
  const auto words = [&](std::size_t offset) { return reinterpret_cast<std::uint64_t*>(base + offset); };
  device::ConnView view{};
  for (std::size_t p = 0; p < slotBytes.size(); ++p) {
    view.slotBytes[p] = slotBytes[p];
    if (slotBytes[p] != 0) view.slots[p] = base + layout.slots[p];
  }
  view.tail = words(layout.tail);
  view.head = words(layout.head);
  view.step = reinterpret_cast<std::uint64_t*>(steps);
  view.sizes = words(layout.sizes);
  return view;
}

}  // namespace tutti::relay
