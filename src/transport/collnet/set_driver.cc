#include "transport/collnet/set_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "plugin/network/collnet.h"
#include "transport/collnet/step_memory.h"
#include "transport/net/lane/counters.h"

namespace tutti::collnet {

using net::loadCounter;
using net::storeCounter;

SetDriver::SetDriver(Connection& connection, SetSetup setup)
    : connection_(connection),
      setup_(std::move(setup)),
      sends_(std::make_unique<StepMemory[]>(device::kSteps)),
      receives_(std::make_unique<StepMemory[]>(device::kSteps)),
      issued_(setup_.firstStep),
      done_(setup_.firstStep),
      sendEvents_(std::make_shared<proxy::StepEvents>(setup_.firstStep, device::kSteps)),
      recvEvents_(std::make_shared<proxy::StepEvents>(setup_.firstStep, device::kSteps)) {}

SetDriver::~SetDriver() {
  sendEvents_->close();
  recvEvents_->close();
}

StepSlots SetDriver::sendSlots(std::uint64_t step) const {
  const device::CollNetConn& lane = setup_.lanes[0];
  return {lane.sendSlots + step % device::kSteps * lane.areaBytes, setup_.sendRegistration};
}

StepSlots SetDriver::recvSlots(std::uint64_t step) const {
  const device::CollNetConn& lane = setup_.lanes[0];
  return {lane.recvSlots + step % device::kSteps * lane.areaBytes, setup_.recvRegistration};
}

/// Only kernels of the software GPU let the network past the slots: the host addresses what they do.
void SetDriver::place(const StepCall& call) {
  const auto at = [](std::uint64_t address) {
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));  // NOLINT(performance-no-int-to-ptr)
  };
  const CallWords& words = call.words();
  const std::size_t slot = issued_ % device::kSteps;
  StepMemory& send = sends_[slot];
  send = {sendSlots(issued_), at(words.sendFrom), call.sent(connection_.node), connection_.user};
  send.copyToSlots();
  receives_[slot] = {recvSlots(issued_), at(words.recvTo), call.received(connection_.node), connection_.user};
}

std::string SetDriver::text(std::uint64_t call, const StepCall& step, std::uint64_t bytes) const {
  return fmt::format("call {} ({})", call, callText(step.words().call, bytes));
}

void SetDriver::report(SetWait wait, std::uint64_t call, std::uint64_t step, std::uint64_t bytes) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  wait_.store(wait, kRelaxed);
  waitStep_.store(step, kRelaxed);
  waitCall_.store(call, kRelaxed);
  waitWord_.store(of(step).words().call, kRelaxed);
  waitBytes_.store(bytes, kRelaxed);
}

/// A kernel is no more than its slots ahead of what came back, and reads nothing that has not come.
Status SetDriver::checkLane(const device::CollNetConn& lane, std::uint64_t tail, std::uint64_t head) const {
  const std::uint64_t done = done_.load(std::memory_order_relaxed);
  if (tail - done <= device::kSteps && done - head <= device::kSteps) return {};
  return fail(ncclInternalError,
              "{}: channel {} of {} says that it has filled {} steps and read {}, where {} have come: memory of its "
              "kernel was overwritten",
              connection_.path.text(), setup_.channels[lane.lane], setup_.name, tail, head, done);
}

Result<bool> SetDriver::filled() {
  for (; laneAsked_ < setup_.lanes.size(); ++laneAsked_) {
    const device::CollNetConn& lane = setup_.lanes[laneAsked_];
    const std::uint64_t tail = loadCounter(&lane.sendTail->value);
    if (tail == issued_) return false;
    const std::uint64_t head = loadCounter(&lane.recvHead->value);
    TRY(checkLane(lane, tail, head));
    if (issued_ - head >= device::kSteps) return false;
  }
  laneAsked_ = 0;
  return true;
}

Result<bool> SetDriver::beginStep(const SetDriver* busy) {
  ASSIGN(const bool ready, filled());
  if (!ready) return false;
  const CallWords words = wordsOf(*setup_.lanes[0].words, issued_);
  const std::string nonsense = nonsenseIn(words, {connection_.nodes, setup_.lanes[0].areaBytes});
  if (!nonsense.empty()) {
    return fail(ncclInternalError, "{}: a kernel says of step {} of {}: {}; its memory was overwritten",
                connection_.path.text(), issued_, setup_.name, nonsense);
  }
  if (busy != nullptr && words.bytes != 0) {
    return fail(ncclInternalError,
                "{}: kernels have filled step {} of {} while calls of {} are under way: other nodes could make them in "
                "another order",
                connection_.path.text(), issued_, setup_.name, busy->name());
  }
  steps_[issued_ % device::kSteps] = StepCall(words);
  place(of(issued_));
  for (const bool sends : {true, false}) {
    proxy::StepEvents& events = sends ? *sendEvents_ : *recvEvents_;
    if (!events.look()) [[likely]]
      continue;
    const StepRange range = sends ? of(issued_).sent(connection_.node) : of(issued_).received(connection_.node);
    events.setBytes(issued_, words.bytes == 0 ? 0 : static_cast<std::uint32_t>(range.bytes));
  }
  connection_.tally.posted();
  offset_ = 0;
  posting_ = true;
  return true;
}

Result<void*> SetDriver::issue(StepRange piece) const {
  const StepCall& call = of(issued_);
  const StepRange own = call.ownPart(piece, connection_.node);
  const bool gathers = call.func() == device::CollNetFunc::AllGather;
  const bool scatters = call.func() == device::CollNetFunc::ReduceScatter;
  const auto send = sends_[issued_ % device::kSteps].at(gathers ? own : piece);
  const auto recv = receives_[issued_ % device::kSteps].at(scatters ? own : piece);
  const plugin::CollNetReduction reduction{call.type(), call.op()};
  const plugin::CollNetWindow window{call.perNode(), call.begin() + piece.offset, piece.bytes};
  plugin::CollNet& network = *connection_.network;
  if (gathers) return network.iallgather(connection_.end, send, recv, window);
  if (scatters) return network.ireducescatter(connection_.end, send, recv, window, reduction);
  return network.iallreduce(connection_.end, send, recv, reduction);
}

void SetDriver::push(const UnderWay& call) {
  underWay_[posted_ % kMostUnderWay] = call;
  ++posted_;
  if (!call.last) return;
  posting_ = false;
  ++issued_;
}

Result<bool> SetDriver::postPiece() {
  if (posted_ - ended_ == kMostUnderWay) return false;
  const StepCall& call = of(issued_);
  if (call.bytes() == 0) {
    push({.last = true});
    return true;
  }
  const StepRange piece = call.pieceAt(offset_, connection_.mostBytes);
  const std::uint64_t number = connection_.calls;
  const auto request = issue(piece);
  if (!request.ok()) return failCollNet(connection_.path, request.status(), text(number, call, piece.bytes));
  if (request.value() == nullptr) {
    if (!std::exchange(stalled_, true)) connection_.tally.stalled();
    if (posted_ == ended_) report(SetWait::Room, number, issued_, piece.bytes);
    return false;
  }
  stalled_ = false;
  ++connection_.calls;
  offset_ += piece.bytes;
  push({request.value(), number, piece.bytes, offset_ == call.bytes()});
  return true;
}

Result<bool> SetDriver::post(const SetDriver* busy) {
  for (bool any = false;; any = true) {
    if (!posting_) {
      ASSIGN(const bool begun, beginStep(busy));
      if (!begun) return any;
    }
    ASSIGN(const bool taken, postPiece());
    if (!taken) return any;
  }
}

Result<bool> SetDriver::flushed(std::uint64_t call) {
  const std::uint64_t step = done_.load(std::memory_order_relaxed);
  const StepRange received = of(step).received(connection_.node);
  if (flush_ == nullptr) {
    if (!setup_.flushes || received.bytes == 0) return true;
    const auto flush = connection_.network->iflush(connection_.end, receives_[step % device::kSteps].at(received));
    if (!flush.ok()) {
      return failCollNet(connection_.path, flush.status(),
                         fmt::format("the flush of {}", text(call, of(step), received.bytes)));
    }
    flush_ = flush.value();
    if (flush_ == nullptr) return true;
  }
  const auto over = connection_.network->test(flush_, nullptr);
  if (!over.ok()) {
    return failCollNet(connection_.path, over.status(),
                       fmt::format("the test of the flush of {}", text(call, of(step), received.bytes)));
  }
  if (over.value()) flush_ = nullptr;
  if (!over.value()) report(SetWait::Flush, call, step, received.bytes);
  return over.value();
}

Result<bool> SetDriver::oldestEnded() {
  UnderWay& oldest = underWay_[ended_ % kMostUnderWay];
  const std::uint64_t step = done_.load(std::memory_order_relaxed);
  if (oldest.request != nullptr) {
    const auto over = connection_.network->test(oldest.request, nullptr);
    if (!over.ok()) {
      return failCollNet(connection_.path, over.status(),
                         fmt::format("the test of {}", text(oldest.call, of(step), oldest.bytes)));
    }
    if (!over.value()) {
      report(SetWait::Completion, oldest.call, step, oldest.bytes);
      return false;
    }
    oldest.request = nullptr;
    connection_.tally.bytes(oldest.bytes);
  }
  return oldest.last ? flushed(oldest.call) : true;
}

void SetDriver::deliver() {
  const std::uint64_t done = done_.load(std::memory_order_relaxed) + 1;
  const std::size_t slot = (done - 1) % device::kSteps;
  receives_[slot].copyFromSlots();
  for (StepMemory* const memory : {&sends_[slot], &receives_[slot]}) memory->end(connection_.user);
  // First of all threads that may look (quiet()): who has got a step may fill the next at once.
  done_.store(done, std::memory_order_relaxed);
  for (const device::CollNetConn& lane : setup_.lanes) {
    storeCounter(&lane.recvTail->value, done);
    storeCounter(&lane.sendHead->value, done);
  }
  connection_.tally.done();
}

Result<bool> SetDriver::finish() {
  for (bool any = false;; any = true) {
    if (posted_ == ended_) {
      if (!posting_) wait_.store(SetWait::Kernel, std::memory_order_relaxed);
      return any;
    }
    ASSIGN(const bool over, oldestEnded());
    if (!over) return any;
    const bool last = underWay_[ended_ % kMostUnderWay].last;
    ++ended_;
    if (last) deliver();
  }
}

std::uint64_t SetDriver::consumed() const {
  std::uint64_t least = done_.load(std::memory_order_relaxed);
  for (const device::CollNetConn& lane : setup_.lanes) {
    least = std::min(least, loadCounter(&lane.recvHead->value));
  }
  return least;
}

void SetDriver::tell() {
  const std::uint64_t done = done_.load(std::memory_order_relaxed);
  if (sendEvents_->look()) [[unlikely]] {
    sendEvents_->follow({proxy::StepEvents::kAtOnce, issued_ + (posting_ ? 1 : 0), issued_, done});
  }
  if (recvEvents_->look()) [[unlikely]] {
    recvEvents_->follow({issued_, done + (flush_ != nullptr ? 1 : 0), done, consumed()});
  }
}

bool SetDriver::quiet() const {
  const std::uint64_t done = done_.load(std::memory_order_relaxed);
  for (const device::CollNetConn& lane : setup_.lanes) {
    if (loadCounter(&lane.sendTail->value) != done) return false;
  }
  return true;
}

SetFacts SetDriver::facts() const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  SetFacts facts{.wait = wait_.load(kRelaxed), .step = waitStep_.load(kRelaxed)};
  if (facts.atNetwork()) {
    facts.call = waitCall_.load(kRelaxed);
    facts.word = waitWord_.load(kRelaxed);
    facts.bytes = waitBytes_.load(kRelaxed);
    return facts;
  }
  facts.step = done_.load(kRelaxed);
  int empty = -1, taken = -1;
  bool anyFilled = false;
  for (std::size_t i = 0; i < setup_.lanes.size(); ++i) {
    const device::CollNetConn& lane = setup_.lanes[i];
    const bool has = loadCounter(&lane.sendTail->value) != facts.step;
    anyFilled = anyFilled || has;
    if (!has && empty < 0) empty = setup_.channels[i];
    if (taken < 0 && facts.step - loadCounter(&lane.recvHead->value) >= device::kSteps) taken = setup_.channels[i];
  }
  if (!anyFilled) return facts;
  facts.channel = empty >= 0 ? empty : taken;
  // Neither: it is about to be given to the network.
  if (facts.channel >= 0) facts.wait = empty >= 0 ? SetWait::Fill : SetWait::Free;
  return facts;
}

}  // namespace tutti::collnet
