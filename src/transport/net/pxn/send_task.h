// The relay's part while a connection is used: an ordinary sender over the network, whose kernels are another rank's.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "proxy/task.h"
#include "transport/net/lane/path.h"
#include "transport/net/pxn/memory.h"
#include "transport/net/send/sender.h"

namespace tutti::net::pxn {

/// Driven by the relay's engine (proxy/task.h). Never fails there: a relay goes on for others; what has failed stands
/// on the status page. Counts as busy while the sender's engine beats, and `kLinger` longer.
class PxnSendTask final : public proxy::ProgressTask {
 public:
  static constexpr milliseconds kLinger{20};

  /// `status` must outlive it.
  PxnSendTask(const net::SendSetup& setup, PxnStatusPage& status);
  Result<bool> advance() override;
  bool quiet() const override;
  proxy::TaskCounters counters() const override { return sender_.counters(); }
  std::string describe() const override { return sender_.describe(); }
  /// Nothing is under way that has not come through. Any thread.
  bool atRest() const { return failed_ || allSettled(view_, status_); }

  /// The sender has asked for it. The service's thread, before it holds the group.
  static void wake(PxnStatusPage& status);

 private:
  void settle();
  void part();
  void tell();
  void report(Status why);
  bool senderBeats() const;

  PxnStatusPage& status_;
  device::SendConn view_;
  net::NetSender sender_;
  std::atomic<bool> failed_{false};
  bool parting_ = false;
  std::uint64_t turns_ = 0;
  std::optional<net::LaneFacts> told_;
  std::array<std::uint64_t, device::kProtocols> settled_{};
  mutable std::uint64_t pulse_ = 0;
  mutable SteadyClock::time_point beatAt_{};
};

}  // namespace tutti::net::pxn
