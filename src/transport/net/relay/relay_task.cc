#include "transport/net/relay/relay_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/log.h"
#include "transport/net/relay/relay_wire.h"

namespace tutti::relay {

using device::Protocol;

namespace {

/// Turns between two looks at what takes a system call or a lock.
constexpr unsigned kTurnsPerLook = 256;
constexpr auto kSimple = static_cast<std::size_t>(Protocol::Simple);

}  // namespace

/// Once for each time that the relay has gone to sleep.
void RelayedTask::wakeRelay() {
  const std::uint32_t wakes = read(board_.wakes);
  if (rung_ && wakes == wakesAtRing_) return;
  const Kind kind = Kind::Wake;
  wakesAtRing_ = wakes;
  rung_ = sendPacket(line_, packetOf(kind)) == PacketIo::Done;
}

Status RelayedTask::relayFailed(std::uint32_t code) const {
  return fail(static_cast<ncclResult_t>(code), "{}: {}, which sends in its stead, has failed: {}", path_.text(),
              transport::rankText(relay_), board_.text.data());
}

Status RelayedTask::look() {
  if (path_.peerHasLeft()) write(board_.peerLeft, 1U);
  std::array<std::byte, kMostBytes> packet;
  if (receivePacket(line_, packet).state != PacketIo::Gone) return {};
  return fail(
      ncclRemoteError,
      "{}: {}, which sends in its stead, has ended or given up: the local connection with it is closed. Look for "
      "its own first error; NCCL_PXN_DISABLE=1 makes every rank send by itself",
      path_.text(), transport::rankText(relay_));
}

Result<bool> RelayedTask::advance() {
  write(board_.pulse, ++pulse_, std::memory_order_seq_cst);
  if (read(board_.awake, std::memory_order_seq_cst) == 0) wakeRelay();
  if (const std::uint32_t code = read(board_.failed); code != 0) return relayFailed(code);
  if (turns_++ % kTurnsPerLook == 0) TRY(look());
  return false;
}

std::uint64_t RelayedTask::headOf(std::size_t protocol) const {
  return view_.slotBytes[protocol] == 0 ? 0 : net::loadCounter(view_.headOf(static_cast<Protocol>(protocol)));
}

bool RelayedTask::quiet() const {
  for (std::size_t p = 0; p < device::kProtocols; ++p) {
    if (view_.slotBytes[p] == 0) continue;
    const std::uint64_t settled = read(board_.settled[p]);
    if (p == kSimple) {
      if (net::loadCounter(view_.tailOf(Protocol::Simple)) != settled) return false;
      continue;
    }
    const auto protocol = static_cast<Protocol>(p);
    const std::uint64_t word = net::loadCounter(view_.sizesOf(protocol) + settled % device::kSteps);
    if (device::isSizeOf(word, settled)) return false;
  }
  return true;
}

/// Steps that the relay has taken, and those that have left it for good.
TaskCounters RelayedTask::counters() const {
  TaskCounters counters;
  for (std::size_t p = 0; p < device::kProtocols; ++p) {
    counters.done += read(board_.settled[p]);  // before the head, which is never behind
    counters.posted += headOf(p);
  }
  counters.bytes = read(board_.bytes);
  counters.stalls = read(board_.stalls);
  return counters;
}

std::string RelayedTask::describe() const {
  const std::uint64_t settled = read(board_.settled[kSimple]);
  const std::uint64_t head = headOf(kSimple);
  const std::uint64_t tail = view_.slotBytes[kSimple] == 0 ? 0 : net::loadCounter(view_.tailOf(Protocol::Simple));
  const std::string relay = transport::rankText(relay_);
  if (tail != head) {
    return fmt::format("{}: Simple step {}, waits for {}, which sends in its stead, to get it through",
                       path_.direction(), head, relay);
  }
  if (!quiet())
    return fmt::format("{}: step {}, waits for {}, which sends in its stead", path_.direction(), settled, relay);
  return fmt::format("{}: step {}, waits for a kernel; {} sends in its stead", path_.direction(), settled, relay);
}

}  // namespace tutti::relay
