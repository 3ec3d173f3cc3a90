#include "transport/net/recv/flagged.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/log.h"
#include "transport/net/lane/counters.h"
#include "transport/net/lane/flag_lines.h"
#include "transport/net/lane/parting.h"
#include "transport/net/lane/tally.h"

namespace tutti::net {

FlaggedRecvLane::FlaggedRecvLane(NetLane& lane, const RecvSetup& setup, Tally& tally)
    : lane_(lane),
      path_(setup.path),
      view_(setup.view),
      tally_(tally),
      messages_(setup.messages),
      room_(receiverMessageBytes({setup.view.slotBytes[0], setup.view.slotBytes[1], 0}) / kMostUnderWay),
      queue_(lane, tally, 0),
      requests_{trace::Requests(trace::Kind::NetRecv, stepWords(setup.path, device::Protocol::LL)),
                trace::Requests(trace::Kind::NetRecv, stepWords(setup.path, device::Protocol::LL128))} {
  for (Fifo& fifo : fifos_) {
    fifo.arrived = fifo.put = fifo.sized = setup.firstStep;
    fifo.events = std::make_shared<proxy::StepEvents>(setup.firstStep, device::kSteps);
    fifo.report.set(LaneWait::Message, fifo.put);
  }
}

Result<bool> FlaggedRecvLane::post() {
  bool any = false;
  for (; free_ != 0; any = true) {
    const auto place = refused_.value_or(static_cast<Place>(std::countr_zero(free_)));
    refused_ = place;
    ASSIGN(const bool taken, queue_.post({messageAt(place), room_, lane_.tag, lane_.registration}));
    if (!taken) return any;
    refused_.reset();
    free_ &= ~(1u << place);
    order_[(queue_.posted() - 1) % kMostUnderWay] = place;
  }
  return any;
}

Status FlaggedRecvLane::enter(Place place, std::size_t received) {
  MessageHead head;
  if (received >= sizeof(head) || !lane_.tellsSizes) std::memcpy(&head, messageAt(place), sizeof(head));
  if (lane_.parts && head.protocol == kPartingWord) {
    ++partings_;  // its place stays taken, so that no receive is posted there any more
    return {};
  }
  Fifo* const fifo = head.protocol < kFlagged ? &fifos_[head.protocol] : nullptr;
  const auto protocol = static_cast<device::Protocol>(head.protocol);
  const bool whole = !lane_.tellsSizes || received == sizeof(head) + head.bytes;
  const bool right = fifo != nullptr && whole && head.step == fifo->arrived &&
                     head.bytes <= contentRoom(protocol, view_.slotBytes[head.protocol]);
  if (!right) {
    return fail(ncclRemoteError,
                "{}: a message of {} bytes says that it is step {} of protocol {} with {} bytes of content, and is not "
                "what comes next; messages were lost, cut short or confused on the way",
                path_.text(), received, head.step, head.protocol, head.bytes);
  }
  fifo->bytes[fifo->arrived % fifo->bytes.size()] = head.bytes;
  fifo->placeOf[fifo->arrived++ % kMostUnderWay] = place;
  requests_[head.protocol].arrived(head.step, head.bytes);
  tally_.posted();
  return {};
}

Result<bool> FlaggedRecvLane::take() {
  bool any = false;
  for (; !queue_.empty(); queue_.pop(), any = true) {
    ASSIGN(const int bytes, queue_.oldest());
    if (bytes < 0) return any;
    TRY(enter(order_[queue_.done() % kMostUnderWay], static_cast<std::size_t>(bytes)));
  }
  return any;
}

bool FlaggedRecvLane::put(device::Protocol protocol) {
  Fifo& fifo = fifos_[static_cast<std::size_t>(protocol)];
  if (fifo.put == fifo.arrived) return false;
  const std::uint64_t head = loadCounter(view_.headOf(protocol));
  const std::uint32_t slotBytes = view_.slotBytes[static_cast<int>(protocol)];
  bool any = false;
  for (; fifo.put != fifo.arrived; ++fifo.put, any = true) {
    const Place place = fifo.placeOf[fifo.put % kMostUnderWay];
    MessageHead message;
    std::memcpy(&message, messageAt(place), sizeof(message));
    if (static_cast<std::int64_t>(fifo.put - head) >= device::kSteps) {
      fifo.report.set(LaneWait::Slot, fifo.put, message.bytes);
      return any;
    }
    std::byte* const slot = view_.slots[static_cast<int>(protocol)] + fifo.put % device::kSteps * slotBytes;
    putLines(protocol, {slot, slotBytes, fifo.put}, message.bytes, messageAt(place) + sizeof(message));
    free_ |= 1u << place;
    tally_.bytes(message.bytes);
    tally_.done();
  }
  fifo.report.set(LaneWait::Message, fifo.put);
  return any;
}

/// Receives are for whatever comes: one is posted for every step. What comes may be ahead of its operation.
void FlaggedRecvLane::tell() {
  for (const device::Protocol protocol : {device::Protocol::LL, device::Protocol::LL128}) {
    Fifo& fifo = fifos_[static_cast<std::size_t>(protocol)];
    if (!fifo.events->look()) continue;
    if (fifo.arrived - fifo.sized > fifo.bytes.size()) fifo.sized = fifo.arrived - fifo.bytes.size();
    for (; fifo.sized != fifo.arrived; ++fifo.sized) {
      fifo.events->setBytes(fifo.sized, fifo.bytes[fifo.sized % fifo.bytes.size()]);
    }
    fifo.events->follow({proxy::StepEvents::kAtOnce, fifo.arrived, fifo.put, loadCounter(view_.headOf(protocol))});
  }
}

Result<bool> FlaggedRecvLane::drain(bool /*peerHasLeft*/) {
  const bool ll = put(device::Protocol::LL);
  const bool ll128 = put(device::Protocol::LL128);
  tell();
  return ll || ll128;
}

Result<bool> FlaggedRecvLane::advance() {
  ASSIGN(const bool taken, take());
  tell();
  const bool ll = put(device::Protocol::LL);
  const bool ll128 = put(device::Protocol::LL128);
  ASSIGN(const bool posted, post());
  tell();
  return taken || ll || ll128 || posted;
}

std::size_t receiverMessageBytes(const device::SlotBytes& slotBytes) {
  return kMostUnderWay *
         std::max(messageRoom(device::Protocol::LL, slotBytes[0]), messageRoom(device::Protocol::LL128, slotBytes[1]));
}

}  // namespace tutti::net
