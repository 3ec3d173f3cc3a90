#include "transport/net/recv/receiver.h"

#include <fmt/format.h>

#include "transport/net/recv/flagged.h"
#include "transport/net/recv/simple.h"

namespace tutti::net {

NetReceiver::NetReceiver(const RecvSetup& setup) : setup_(setup) {
  if (setup_.simple != nullptr) simple_ = std::make_unique<SimpleRecvLane>(*setup_.simple, setup_, tally_);
  if (setup_.flagged != nullptr) flagged_ = std::make_unique<FlaggedRecvLane>(*setup_.flagged, setup_, tally_);
}

NetReceiver::~NetReceiver() = default;

/// Receives are posted ahead of what will come: those that nothing comes for end with the connection, in whatever way
/// the network says so. A peer that said goodbye has sent all that it ever will; its word may come a little later.
template <class Lane>
Result<bool> NetReceiver::advanceLane(Lane& lane, LaneShutdown& end) {
  if (!end.begun()) {
    auto advanced = lane.advance();
    if (advanced.ok() || !lane.networkFailed()) return advanced;
    end.begin(advanced.status(), "receiving");
  }
  ASSIGN(const bool peerHasLeft, end.settle(setup_));
  return lane.drain(peerHasLeft);
}

Result<bool> NetReceiver::advance() {
  bool any = false;
  if (flagged_) {
    ASSIGN(any, advanceLane(*flagged_, flaggedEnd_));
  }
  if (simple_) {
    ASSIGN(const bool simple, advanceLane(*simple_, simpleEnd_));
    any = any || simple;
  }
  if (parting_.pending() && (nothingPosted() || parting_.late())) parting_.end();
  return any;
}

void NetReceiver::part() {
  if (partsSimple() || partsFlagged()) parting_.begin();
}

bool NetReceiver::nothingPosted() {
  const bool simple = !partsSimple() || simpleEnd_.begun() || simple_->ended();
  return simple && (!partsFlagged() || flaggedEnd_.begun() || flagged_->ended());
}

const LaneReport* NetReceiver::reportOf(device::Protocol protocol) const {
  if (protocol == device::Protocol::Simple) return simple_ ? &simple_->report() : nullptr;
  return flagged_ ? &flagged_->report(protocol) : nullptr;
}

std::shared_ptr<proxy::StepEvents> NetReceiver::stepEvents(std::size_t protocol) const {
  if (protocol == static_cast<std::size_t>(device::Protocol::Simple)) return simple_ ? simple_->events() : nullptr;
  return flagged_ ? flagged_->events(protocol) : nullptr;
}

bool NetReceiver::starves(std::size_t protocol) const {
  const LaneReport* const report = reportOf(static_cast<device::Protocol>(protocol));
  return report != nullptr && report->wait() == LaneWait::Message;
}

std::string NetReceiver::describe() const {
  const auto shown = factsToShow(
      {reportOf(device::Protocol::Simple), reportOf(device::Protocol::LL), reportOf(device::Protocol::LL128)});
  if (!shown) return setup_.path.brief() + ": no protocol";
  return fmt::format("{}: {}, {}", setup_.path.brief(), shown->place(), shown->waits());
}

}  // namespace tutti::net
