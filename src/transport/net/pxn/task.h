// The sender's part while another rank sends in its stead: keeps that one awake, hears of its failures, notices when it
// does nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "proxy/step_events.h"
#include "proxy/task.h"
#include "topo/machine/peer_info.h"
#include "transport/net/lane/parting.h"
#include "transport/net/lane/path.h"
#include "transport/net/pxn/memory.h"

namespace tutti::net::pxn {

/// Driven by the sender's engine (proxy/task.h), whose communicator's holds and kernels keep it turning. Moves nothing
/// itself.
class RelayedTask final : public proxy::ProgressTask {
 public:
  /// What is referred to must outlive it. `view`: as the host addresses the memory.
  RelayedTask(const net::NetPath& path, const topo::PeerInfo& relay, const device::SendConn& view,
              PxnStatusPage& status, int line, bool parts);
  ~RelayedTask() override;
  /// Errors: the relay's, with its code; ncclRemoteError when it has gone, and kGoneGrace later nothing else has ended
  /// this communicator.
  Result<bool> advance() override;
  /// A relay that gives up because of somebody else closes its line at once, and word of what it has heard comes
  /// another way.
  static constexpr milliseconds kGoneGrace{2000};
  /// The relay's engine counts as stuck when it has made no turn for so long, with something to send.
  static constexpr milliseconds kStuck{1500};
  bool quiet() const override { return !parting_.pending() && settled(); }
  void part() override;
  bool parted() const override { return !parting_.pending(); }
  proxy::TaskCounters counters() const override;
  std::string describe() const override;
  /// Told here of what can be seen from here: the profiler of the relay's process knows nothing of the operation.
  std::shared_ptr<proxy::StepEvents> stepEvents(std::size_t protocol) const override { return events_[protocol]; }
  proxy::PendingSend hold() const override;

 private:
  void wakeRelay();
  void tell(std::size_t protocol);
  bool hasGone();
  Status look();
  void watchRelay();
  void advanceParting();
  bool settled() const { return allSettled(view_, status_); }
  Status relayFailed(std::uint32_t code) const;
  std::uint64_t headOf(std::size_t protocol) const;

  const net::NetPath& path_;
  const topo::PeerInfo& relay_;
  const device::SendConn view_;
  PxnStatusPage& status_;
  const int line_;
  const bool parts_;
  std::array<std::shared_ptr<proxy::StepEvents>, device::kProtocols> events_;
  std::array<std::uint64_t, device::kProtocols> made_{};  ///< steps that kernels have filled, as far as they were told
  Parting parting_;
  std::uint64_t pulse_ = 0;
  bool rung_ = false;
  std::uint32_t wakesAtRing_ = 0;
  unsigned turns_ = 0;
  // Whether the relay's engine turns, while it has something to do.
  std::uint64_t relaysTurns_ = 0;
  std::optional<SteadyClock::time_point> idleSince_;
  std::atomic<bool> stuck_{false};
  std::optional<SteadyClock::time_point> goneSince_;
};

}  // namespace tutti::net::pxn
