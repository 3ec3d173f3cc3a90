#include "transport/net/pxn/send_task.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/log.h"
#include "transport/net/lane/counters.h"

namespace tutti::net::pxn {

PxnSendTask::PxnSendTask(const net::SendSetup& setup, PxnStatusPage& status)
    : status_(status), view_(setup.view), sender_(setup) {
  tell();
}

Result<bool> PxnSendTask::advance() {
  // Of a sender that rests the network is not asked either: its peer may have left.
  if (failed_ || read(status_.awake) == 0) return false;
  write(status_.turns, ++turns_, std::memory_order_relaxed);
  part();
  const Result<bool> advanced = sender_.advance();
  if (!advanced.ok()) {
    report(advanced.status());
    return false;
  }
  if (!advanced.value()) {
    settle();
    tell();
  }
  return advanced;
}

/// What it waits for, for reports of the sender's.
void PxnSendTask::tell() {
  const net::LaneFacts facts = sender_.facts();
  if (facts == told_) return;
  told_ = facts;
  write(status_.wait, packed(facts), std::memory_order_relaxed);
  write(status_.step, facts.step, std::memory_order_relaxed);
}

/// Says which steps have left for good: those before the heads, when nothing is under way.
void PxnSendTask::settle() {
  std::array<std::uint64_t, device::kProtocols> heads{};
  for (std::size_t p = 0; p < heads.size(); ++p) {
    if (view_.slotBytes[p] != 0) heads[p] = net::loadCounter(view_.headOf(static_cast<device::Protocol>(p)));
  }
  if (heads == settled_ || !sender_.quiet()) return;
  settled_ = heads;
  const proxy::TaskCounters counters = sender_.counters();
  write(status_.bytes, counters.bytes, std::memory_order_relaxed);
  write(status_.stalls, counters.stalls, std::memory_order_relaxed);
  for (std::size_t p = 0; p < heads.size(); ++p) write(status_.settled[p], heads[p]);
}

/// When its sender says so; and tells it when that is done.
void PxnSendTask::part() {
  if (!parting_ && read(status_.part) == 0) return;
  if (!std::exchange(parting_, true)) sender_.part();
  if (sender_.parted()) write(status_.parted, 1U);
}

void PxnSendTask::report(Status why) {
  failed_ = true;
  const std::string said = lastErrorText();
  const std::size_t bytes = std::min(said.size(), status_.text.size() - 1);
  std::memcpy(status_.text.data(), said.data(), bytes);
  status_.text[bytes] = 0;
  write(status_.failed, static_cast<std::uint32_t>(why.code()));
}

/// Whether its engine has made a turn lately. If not, it has to send a Wake from now on: who beats first and then looks
/// for `awake` and who first takes that back and then looks for a beat cannot miss each other.
bool PxnSendTask::senderBeats() const {
  const std::uint64_t pulse = read(status_.pulse, std::memory_order_seq_cst);
  const auto now = SteadyClock::now();
  if (pulse != pulse_) {
    pulse_ = pulse;
    beatAt_ = now;
  }
  if (now - beatAt_ < kLinger) return true;
  if (read(status_.awake) == 0) return false;
  write(status_.awake, 0U, std::memory_order_seq_cst);
  if (read(status_.pulse, std::memory_order_seq_cst) == pulse_) return false;
  write(status_.awake, 1U, std::memory_order_seq_cst);
  return true;
}

bool PxnSendTask::quiet() const {
  if (failed_) return true;
  if (read(status_.awake) == 0) return true;
  return sender_.quiet() && !senderBeats();
}

void PxnSendTask::wake(PxnStatusPage& status) {
  write(status.awake, 1U, std::memory_order_seq_cst);
  write(status.wakes, read(status.wakes, std::memory_order_relaxed) + 1);
}

}  // namespace tutti::net::pxn
