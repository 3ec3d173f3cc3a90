#include "transport/net/pxn/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/log.h"
#include "transport/common/ranks.h"
#include "transport/net/lane/counters.h"
#include "transport/net/lane/peer_farewells.h"
#include "transport/net/lane/send_errors.h"
#include "transport/net/pxn/wire.h"

namespace tutti::net::pxn {

namespace {

/// Turns between two looks at what takes a system call or a lock.
constexpr unsigned kTurnsPerLook = 256;
constexpr auto kSimple = static_cast<std::size_t>(device::Protocol::Simple);

}  // namespace

RelayedTask::RelayedTask(const net::NetPath& path, const topo::PeerInfo& relay, const device::SendConn& view,
                         PxnStatusPage& status, int line, bool parts)
    : path_(path), relay_(relay), view_(view), status_(status), line_(line), parts_(parts) {
  for (std::size_t protocol = 0; protocol < device::kProtocols; ++protocol) {
    if (view_.slotBytes[protocol] == 0) continue;
    events_[protocol] = std::make_shared<proxy::StepEvents>(0, device::kSteps);
  }
}

RelayedTask::~RelayedTask() {
  for (const auto& events : events_) {
    if (events != nullptr) events->close();
  }
}

/// What kernels have filled their words say; who sends for us says what has gone.
void RelayedTask::tell(std::size_t protocol) {
  proxy::StepEvents& events = *events_[protocol];
  const std::uint64_t settled = read(status_.settled[protocol]);
  std::uint64_t& made = made_[protocol];
  made = std::max(made, settled);
  for (; made - settled < device::kSteps; ++made) {
    const std::uint64_t word = net::sizeSaid(view_, static_cast<device::Protocol>(protocol), made);
    if (!device::isSizeOf(word, made)) break;
    events.setBytes(made, static_cast<std::uint32_t>(word));
  }
  events.follow({proxy::StepEvents::kAtOnce, made, std::max(settled, std::min(headOf(protocol), made)), settled});
}

/// Once for each time that the relay has gone to sleep.
void RelayedTask::wakeRelay() {
  const std::uint32_t wakes = read(status_.wakes);
  if (rung_ && wakes == wakesAtRing_) return;
  const Kind kind = Kind::Wake;
  wakesAtRing_ = wakes;
  rung_ = transport::sendPacket(line_, transport::packetOf(kind)) == transport::PacketIo::Done;
}

Status RelayedTask::relayFailed(std::uint32_t code) const {
  return fail(static_cast<ncclResult_t>(code), "{}: {}, which sends in its stead, has failed: {}", path_.text(),
              transport::rankText(relay_), status_.text.data());
}

/// An engine that has nothing to do for us need not turn.
void RelayedTask::watchRelay() {
  const std::uint64_t turns = read(status_.turns, std::memory_order_relaxed);
  const auto now = SteadyClock::now();
  if (turns != relaysTurns_ || settled()) {
    idleSince_.reset();
  } else if (!idleSince_) {
    idleSince_ = now;
  }
  relaysTurns_ = turns;
  stuck_.store(idleSince_ && now - *idleSince_ >= kStuck, std::memory_order_relaxed);
}

bool RelayedTask::hasGone() {
  std::array<std::byte, kMostBytes> packet;
  if (!goneSince_ && transport::receivePacket(line_, packet).state == transport::PacketIo::Gone)
    goneSince_ = SteadyClock::now();
  return goneSince_.has_value();
}

Status RelayedTask::look() {
  if (path_.peerHasLeft()) write(status_.peerLeft, 1U);
  if (!hasGone()) {
    watchRelay();
    return {};
  }
  stuck_.store(false, std::memory_order_relaxed);  // it does nothing because it is not there
  const bool inPeace = path_.farewells != nullptr && path_.farewells->hasLeft(relay_.rank);
  if (inPeace && settled()) return {};  // nothing is lost with it
  if (SteadyClock::now() - *goneSince_ < kGoneGrace) return {};
  if (const std::string exit = path_.exitOf(relay_.rank); !exit.empty()) {
    return fail(
        ncclRemoteError,
        "{}: it goes through a relay (PXN) that is no more: {}. Let every rank finish what it has begun with the "
        "others before its process ends; NCCL_PXN_DISABLE=1 makes every rank send by itself",
        path_.text(), exit);
  }
  return fail(
      ncclRemoteError,
      "{}: {}, which sends in its stead, has ended or given up: the local connection with it is closed. Look for "
      "its own first error; NCCL_PXN_DISABLE=1 makes every rank send by itself",
      path_.text(), transport::rankText(relay_));
}

Result<bool> RelayedTask::advance() {
  write(status_.pulse, ++pulse_, std::memory_order_seq_cst);
  if (!goneSince_ && read(status_.awake, std::memory_order_seq_cst) == 0) wakeRelay();
  if (const std::uint32_t code = read(status_.failed); code != 0) return relayFailed(code);
  if (parting_.pending()) advanceParting();
  for (std::size_t protocol = 0; protocol < device::kProtocols; ++protocol) {
    if (events_[protocol] != nullptr && events_[protocol]->look()) tell(protocol);
  }
  if (turns_++ % kTurnsPerLook == 0) TRY(look());
  return false;
}

void RelayedTask::part() {
  if (!parts_) return;
  parting_.begin();
  write(status_.part, 1U);
}

void RelayedTask::advanceParting() {
  if (read(status_.parted) != 0 || goneSince_ || parting_.late()) parting_.end();
}

std::uint64_t RelayedTask::headOf(std::size_t protocol) const {
  return view_.slotBytes[protocol] == 0 ? 0 : net::loadCounter(view_.headOf(static_cast<device::Protocol>(protocol)));
}

/// Steps that the relay has taken, and those that have left it for good.
proxy::TaskCounters RelayedTask::counters() const {
  proxy::TaskCounters counters;
  for (std::size_t p = 0; p < device::kProtocols; ++p) {
    counters.done += read(status_.settled[p]);  // before the head, which is never behind
    counters.posted += headOf(p);
  }
  counters.bytes = read(status_.bytes);
  counters.stalls = read(status_.stalls);
  return counters;
}

proxy::PendingSend RelayedTask::hold() const {
  proxy::PendingSend hold{proxy::BlockedBy::Nobody, relay_.rank};
  if (settled()) return hold;
  const net::LaneFacts facts = factsOf(read(status_.wait), read(status_.step));
  if (stuck_.load(std::memory_order_relaxed)) {
    hold.blockedBy = proxy::BlockedBy::Relay;
  } else if (facts.atNetwork()) {
    hold.blockedBy = proxy::BlockedBy::Network;
  }
  return hold;
}

std::string RelayedTask::describe() const {
  const std::string relay = transport::rankText(relay_);
  if (settled()) {
    return fmt::format("{}: step {}, waits for a kernel; {} sends in its stead", path_.brief(),
                       read(status_.settled[kSimple]), relay);
  }
  const net::LaneFacts facts = factsOf(read(status_.wait), read(status_.step));
  return fmt::format("{}: {}; {}, which sends in its stead, {}", path_.brief(), facts.place(), relay,
                     stuck_.load(std::memory_order_relaxed)
                         ? "does nothing: its process is stopped, or its engine hangs in a call of the network"
                         : facts.waits());
}

}  // namespace tutti::net::pxn
