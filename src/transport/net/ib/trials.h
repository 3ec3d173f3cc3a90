// Paths that have failed, tried until they carry packets again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "transport/net/ib/agreement.h"
#include "transport/net/ib/nic/options.h"
#include "transport/net/ib/wire.h"

namespace tutti::net::ib {

class ControlSocket;
class QueuePairs;

/// One end's half, while its connection runs: the sender asks, both make a queue pair beside the others, and the sender
/// writes nothing over it, which the peer's NIC acknowledges. Never waits. Used by one thread at a time.
class PathTrials {
 public:
  /// All are borrowed and outlive it.
  PathTrials(Agreement::Role role, const QueuePairs& pairs, ControlSocket& control, const IbOptions& options);
  ~PathTrials();

  /// Of a frame Try or Answer.
  void hear(const ControlFrame& frame);
  /// Goes on while these are lost. Some of them that work, once.
  Strands advance(const Strands& lost);
  /// An agreement begins: what is under way ends.
  void stop();
  /// As far as this end knows.
  bool portIsUp(std::size_t strand) const;

 private:
  enum class Step : std::uint8_t { Resting, Asking, Connecting, Writing };
  /// The strands between two ports.
  struct Path {
    bool lost = false;
    SteadyClock::time_point since{};  ///< it was lost, or came back
    SteadyClock::time_point next{};   ///< try
    int patience = 0;                 ///< doublings of the delay
    int failures = 0;                 ///< tries that failed
  };

  Status make(std::size_t strand);
  Result<bool> connect(const SideBlock& remote);
  void answer(const ControlFrame& frame);
  void note(const Strands& lost);
  bool mayTry(std::size_t strand, const Path& path) const;
  void ask(std::size_t strand);
  void write();
  Strands look();
  void failed();
  void delay(Path& path) const;

  const Agreement::Role role_;
  const QueuePairs& pairs_;
  ControlSocket& control_;
  const IbOptions& options_;
  std::map<std::size_t, Path> paths_;  ///< by the first of their strands
  Step step_ = Step::Resting;
  std::size_t strand_ = 0;  ///< first of the path that is tried
  std::uint64_t number_ = 0;
  std::unique_ptr<QueuePairs> pair_;  ///< one, of the path that is tried
  SideBlock remote_;
  Deadline until_ = Deadline::never();
};

}  // namespace tutti::net::ib
