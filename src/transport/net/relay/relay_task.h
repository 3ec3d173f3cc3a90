// The sender's part while another rank sends in its stead: keeps that one awake, hears of its failures.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "proxy/task.h"
#include "topo/peer_info.h"
#include "transport/net/net_path.h"
#include "transport/net/relay/relay_memory.h"

namespace tutti::relay {

/// Driven by the sender's engine (proxy/task.h), whose communicator's holds and kernels keep it turning. Moves nothing
/// itself.
class RelayedTask final : public ProgressTask {
 public:
  /// What is referred to must outlive it. `view`: as the host addresses the memory.
  RelayedTask(const net::NetPath& path, const PeerInfo& relay, const device::ConnView& view, Board& board, int line)
      : path_(path), relay_(relay), view_(view), board_(board), line_(line) {}
  /// Errors: the relay's, with its code; ncclRemoteError when it has gone.
  Result<bool> advance() override;
  /// The relay has sent all that kernels gave it, and the network has delivered it.
  bool quiet() const override;
  TaskCounters counters() const override;
  std::string describe() const override;

 private:
  void wakeRelay();
  Status look();
  Status relayFailed(std::uint32_t code) const;
  std::uint64_t headOf(std::size_t protocol) const;

  const net::NetPath& path_;
  const PeerInfo& relay_;
  const device::ConnView view_;
  Board& board_;
  const int line_;
  std::uint64_t pulse_ = 0;
  bool rung_ = false;
  std::uint32_t wakesAtRing_ = 0;
  unsigned turns_ = 0;
};

}  // namespace tutti::relay
