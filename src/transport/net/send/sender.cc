#include "transport/net/send/sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "transport/net/lane/slot_store.h"
#include "transport/net/send/flagged.h"
#include "transport/net/send/parting_sends.h"
#include "transport/net/send/simple.h"

namespace tutti::net {

namespace {

/// How often the network is asked whether what was sent has been delivered; a clock is read every so many turns.
constexpr milliseconds kDeliveryInterval{200};
constexpr unsigned kTurnsPerClock = 32;

/// Whether the network has delivered all, or the peer wants no more. A failure begins the end, which further turns
/// tell: it may yet turn out to be a farewell, and networks say only once why they fail.
bool settled(const NetLane* lane, LaneShutdown& end) {
  if (lane == nullptr || end.closed()) return true;
  if (end.begun()) return false;
  const auto delivered = lane->net->delivered(lane->connection);
  if (!delivered.ok()) end.begin(delivered.status(), "sending");
  return delivered.ok() && delivered.value();
}

}  // namespace

NetSender::NetSender(const SendSetup& setup) : setup_(setup), simpleEnd_(setup.simple), flaggedEnd_(setup.flagged) {
  if (setup_.simple != nullptr) simple_ = std::make_unique<SimpleSendLane>(*setup_.simple, setup_, tally_);
  std::byte* messages = setup_.messages;
  for (const device::Protocol protocol : {device::Protocol::LL, device::Protocol::LL128}) {
    const auto index = static_cast<std::size_t>(protocol);
    if (setup_.flagged == nullptr || setup_.view.slotBytes[index] == 0) continue;
    flagged_[index] = std::make_unique<FlaggedSendLane>(protocol, *setup_.flagged, setup_, tally_, messages);
    messages += device::kSteps * messageRoom(protocol, setup_.view.slotBytes[index]);
  }
  preparePartings(setup_);
}

NetSender::~NetSender() = default;

void NetSender::preparePartings(const SendSetup& setup) {
  if (NetLane* const lane = setup.simple; lane != nullptr && lane->parts) {
    std::byte* const slots =
        setup.shared != nullptr ? setup.shared->memory() : setup.view.slots[static_cast<int>(device::Protocol::Simple)];
    const plugin::NetBuffer message{slots, 0, lane->tag, lane->slotRegistration};
    simplePartings_ = std::make_unique<PartingSends>(*lane, tally_, message);
  }
  if (NetLane* const lane = setup.flagged; lane != nullptr && lane->parts) {
    const plugin::NetBuffer message{setup.messages, sizeof(MessageHead), lane->tag, lane->registration};
    flaggedPartings_ = std::make_unique<PartingSends>(*lane, tally_, message);
  }
}

void NetSender::part() {
  if (!simplePartings_ && !flaggedPartings_) return;
  parting_.begin();
}

bool NetSender::advanceParting() {
  bool any = false;
  bool over = true;
  const auto quiet = [](const auto& lane) { return !lane || lane->quiet(); };
  if (simplePartings_ && !simpleEnd_.begun()) {
    if (simple_->quiet()) simplePartings_->begin();
    any = simplePartings_->advance();
    over = simplePartings_->over();
  }
  if (flaggedPartings_ && !flaggedEnd_.begun()) {
    if (std::all_of(flagged_.begin(), flagged_.end(), quiet) && !flaggedPartings_->begun()) {
      const MessageHead head{kPartingWord, 0, 0};
      std::memcpy(setup_.messages, &head, sizeof(head));
      flaggedPartings_->begin();
    }
    any = flaggedPartings_->advance() || any;
    over = over && flaggedPartings_->over();
  }
  if (over || parting_.late()) parting_.end();
  return any;
}

/// In the order in which messages were made: no lane gets far ahead of another whose kernel came before. The receiver
/// has room for little that a kernel does not want yet.
Result<bool> NetSender::sendInOrder() {
  for (bool any = false;; any = true) {
    FlaggedSendLane* first = nullptr;
    for (auto& lane : flagged_) {
      if (lane && lane->next() != FlaggedSendLane::kNone && (first == nullptr || lane->next() < first->next())) {
        first = &*lane;
      }
    }
    if (first == nullptr) return any;
    ASSIGN(const bool sent, first->sendOne());
    if (!sent) return any;
  }
}

Result<bool> NetSender::collectFlagged() {
  bool any = false;
  for (auto& lane : flagged_) {
    if (!lane) continue;
    std::uint64_t oldest = FlaggedSendLane::kNone;
    for (const auto& other : flagged_) {
      if (other && other != lane) oldest = std::min(oldest, other->oldest());
    }
    ASSIGN(const bool collected, lane->collect(oldest));
    any = any || collected;
  }
  return any;
}

/// There are networks that take it ill to be asked for a later message of a connection before an earlier one.
Result<bool> NetSender::finishInOrder() {
  for (bool any = false;; any = true) {
    FlaggedSendLane* first = nullptr;
    std::uint64_t others = FlaggedSendLane::kNone;
    for (auto& lane : flagged_) {
      if (!lane || lane->underWay() == FlaggedSendLane::kNone) continue;
      const bool earlier = first == nullptr || lane->underWay() < first->underWay();
      if (first != nullptr) others = std::min(others, earlier ? first->underWay() : lane->underWay());
      if (earlier) first = &*lane;
    }
    if (first == nullptr) return any;
    ASSIGN(const bool finished, first->finish(others));
    if (!finished) return any;
  }
}

Result<bool> NetSender::moveFlagged() {
  ASSIGN(const bool sent, sendInOrder());
  ASSIGN(const bool finished, finishInOrder());
  return sent || finished;
}

const char* NetSender::flaggedFailedIn() const {
  for (const auto& lane : flagged_) {
    if (lane && lane->failedIn() != nullptr) return lane->failedIn();
  }
  return nullptr;
}

Result<bool> NetSender::advanceFlagged() {
  ASSIGN(const bool collected, collectFlagged());
  if (!flaggedEnd_.begun()) {
    const auto moved = moveFlagged();
    if (moved.ok()) return collected || moved.value();
    if (flaggedFailedIn() == nullptr) return moved;
    flaggedEnd_.begin(moved.status(), flaggedFailedIn());
  }
  ASSIGN(const bool closed, flaggedEnd_.settle(setup_));
  for (auto& lane : flagged_) {
    if (closed && lane) TRY(lane->abandon());
  }
  return collected;
}

Result<bool> NetSender::advanceSimple() {
  if (!simpleEnd_.begun()) {
    auto advanced = simple_->advance();
    if (advanced.ok() || simple_->failedIn() == nullptr) return advanced;
    simpleEnd_.begin(advanced.status(), simple_->failedIn());
  }
  ASSIGN(const bool closed, simpleEnd_.settle(setup_));
  if (closed) TRY(simple_->abandon());
  return false;
}

bool NetSender::delivered() const {
  const bool flagged = settled(setup_.flagged, flaggedEnd_);
  const bool simple = settled(setup_.simple, simpleEnd_);
  delivered_.store(flagged && simple, std::memory_order_relaxed);
  return flagged && simple;
}

void NetSender::checkDelivery() {
  if (++turns_ % kTurnsPerClock != 0) return;
  const auto now = SteadyClock::now();
  if (now < nextCheck_) return;
  nextCheck_ = now + kDeliveryInterval;
  delivered();
}

Result<bool> NetSender::advance() {
  checkDelivery();
  bool any = false;
  if (setup_.flagged != nullptr) {
    ASSIGN(any, advanceFlagged());
  }
  if (simple_) {
    ASSIGN(const bool simple, advanceSimple());
    any = any || simple;
  }
  if (parting_.pending()) any = advanceParting() || any;
  return any;
}

bool NetSender::presses() const {
  if (parting_.pending()) return true;
  const bool flagged =
      std::any_of(flagged_.begin(), flagged_.end(), [](const auto& lane) { return lane && !lane->quiet(); });
  return flagged || (simple_ && !simple_->quiet());
}

bool NetSender::quiet() const {
  if (presses()) return false;
  return delivered();
}

LaneFacts NetSender::facts() const {
  const auto of = [](const auto& lane) { return lane ? &lane->report() : nullptr; };
  LaneFacts facts = factsToShow({of(simple_), of(flagged_[0]), of(flagged_[1])}).value_or(LaneFacts{});
  if (facts.idle() && !delivered_.load(std::memory_order_relaxed)) facts.wait = LaneWait::Delivery;
  return facts;
}

std::shared_ptr<proxy::StepEvents> NetSender::stepEvents(std::size_t protocol) const {
  if (protocol == static_cast<std::size_t>(device::Protocol::Simple)) return simple_ ? simple_->events() : nullptr;
  return flagged_[protocol] ? flagged_[protocol]->events() : nullptr;
}

proxy::PendingSend NetSender::hold() const {
  return {facts().atNetwork() ? proxy::BlockedBy::Network : proxy::BlockedBy::Nobody, -1};
}

std::string NetSender::describe() const {
  const LaneFacts shown = facts();
  return fmt::format("{}: {}, {}", setup_.path.brief(), shown.place(), shown.waits());
}

}  // namespace tutti::net
