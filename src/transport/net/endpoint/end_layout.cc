#include "transport/net/endpoint/end_layout.h"

#include "device/conn_view.h"
#include "transport/net/recv/flagged.h"
#include "transport/net/send/flagged.h"

namespace tutti::net {
namespace {

constexpr std::size_t kPage = 4096;

constexpr std::size_t roundedUp(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

EndLayout endLayout(const device::SlotBytes& slotBytes, device::Direction direction, bool slotsElsewhere) {
  EndLayout layout;
  layout.tail = 0;
  layout.head = layout.tail + device::kCountersBytes;
  layout.words = layout.head + device::kCountersBytes;
  layout.addresses =
      layout.words + (direction == device::Direction::Send ? sizeof(device::SendWords) : sizeof(device::RecvWords));
  layout.probe = layout.addresses + (direction == device::Direction::Send ? sizeof(device::SlotWords) : 0);
  layout.messages = layout.probe + 2 * kProbeBytes;
  std::size_t end = layout.messages + (direction == device::Direction::Send ? senderMessageBytes(slotBytes)
                                                                            : receiverMessageBytes(slotBytes));
  for (std::size_t p = 0; p < slotBytes.size(); ++p) {
    if (slotBytes[p] == 0 || (p == EndLayout::kSimple && slotsElsewhere)) continue;
    layout.slots[p] = roundedUp(end, kPage);
    end = layout.slots[p] + std::size_t{slotBytes[p]} * device::kSteps;
  }
  layout.bytes = end;
  return layout;
}

}  // namespace tutti::net
