#include "transport/net/pxn/send_task.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/log.h"

namespace tutti::net::pxn {

RelayWork::RelayWork(const net::SendSetup& setup, Board& board) : board_(board), view_(setup.view), sender_(setup) {
  tell();
}

Result<bool> RelayWork::advance() {
  // Of a sender that rests the network is not asked either: its peer may have left.
  if (failed_ || read(board_.awake) == 0) return false;
  write(board_.turns, ++turns_, std::memory_order_relaxed);
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
void RelayWork::tell() {
  const net::LaneFacts facts = sender_.facts();
  if (facts == told_) return;
  told_ = facts;
  write(board_.wait, packed(facts), std::memory_order_relaxed);
  write(board_.step, facts.step, std::memory_order_relaxed);
}

/// Says which steps have left for good: those before the heads, when nothing is under way.
void RelayWork::settle() {
  std::array<std::uint64_t, device::kProtocols> heads{};
  for (std::size_t p = 0; p < heads.size(); ++p) {
    if (view_.slotBytes[p] != 0) heads[p] = net::loadCounter(view_.headOf(static_cast<device::Protocol>(p)));
  }
  if (heads == settled_ || !sender_.quiet()) return;
  settled_ = heads;
  const proxy::TaskCounters counters = sender_.counters();
  write(board_.bytes, counters.bytes, std::memory_order_relaxed);
  write(board_.stalls, counters.stalls, std::memory_order_relaxed);
  for (std::size_t p = 0; p < heads.size(); ++p) write(board_.settled[p], heads[p]);
}

void RelayWork::report(Status why) {
  failed_ = true;
  const std::string said = lastErrorText();
  const std::size_t bytes = std::min(said.size(), board_.text.size() - 1);
  std::memcpy(board_.text.data(), said.data(), bytes);
  board_.text[bytes] = 0;
  write(board_.failed, static_cast<std::uint32_t>(why.code()));
}

/// Whether its engine has made a turn lately. If not, it has to send a Wake from now on: who beats first and then looks
/// for `awake` and who first takes that back and then looks for a beat cannot miss each other.
bool RelayWork::senderBeats() const {
  const std::uint64_t pulse = read(board_.pulse, std::memory_order_seq_cst);
  const auto now = SteadyClock::now();
  if (pulse != pulse_) {
    pulse_ = pulse;
    beatAt_ = now;
  }
  if (now - beatAt_ < kLinger) return true;
  if (read(board_.awake) == 0) return false;
  write(board_.awake, 0U, std::memory_order_seq_cst);
  if (read(board_.pulse, std::memory_order_seq_cst) == pulse_) return false;
  write(board_.awake, 1U, std::memory_order_seq_cst);
  return true;
}

bool RelayWork::quiet() const {
  if (failed_) return true;
  if (read(board_.awake) == 0) return true;
  return sender_.quiet() && !senderBeats();
}

void RelayWork::wake(Board& board) {
  write(board.awake, 1U, std::memory_order_seq_cst);
  write(board.wakes, read(board.wakes, std::memory_order_relaxed) + 1);
}

}  // namespace tutti::net::pxn
