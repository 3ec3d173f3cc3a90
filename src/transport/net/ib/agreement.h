// How the two ends of a connection over several ports go on with other queue pairs than before: they stop, tell each
// other what has arrived, and begin anew. docs/network.md, "A port that fails, and one that returns".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "transport/net/ib/wire.h"

namespace tutti::net::ib {

class ControlSocket;
class QueuePairs;

/// What an agreement asks of its end.
class AgreementEnd {
 public:
  virtual ~AgreementEnd() = default;
  /// All queue pairs are out of order: takes what they have brought. Whether that is all.
  virtual bool drained() = 0;
  /// There are no queue pairs any more; these strands may come again.
  virtual Status stopped(const Strands& left) = 0;
  /// From then on this changes no more.
  virtual RowsSeen rowsSeen() const = 0;
  /// What the peer is told of this side.
  virtual SideBlock side() const = 0;
  /// The queue pairs of these strands stand, at the peer too, which has these rows: goes on.
  virtual Status resume(const Strands& strands, const RowsSeen& peers) = 0;
};

/// One end's half. Never waits: whoever drives the end calls advance() again. Used by one thread at a time.
class Agreement {
 public:
  enum class Role : std::uint8_t { Sender, Receiver };
  /// All are borrowed and outlive it; of the queue pairs those stand that could be connected. `who`: this end, for
  /// messages.
  Agreement(Role role, QueuePairs& pairs, ControlSocket& control, AgreementEnd& end, std::string who);

  /// Whether a strand would be left without these.
  bool canLose(const Strands& strands) const;
  /// These have failed: agrees to go on without them, from the next advance() on.
  void lose(const Strands& strands, const std::string& why);
  /// Of a sender: these have been tried and work.
  void revive(const Strands& strands);
  /// Those in use.
  const Strands& active() const { return active_; }
  /// Strands that do without, now or after the next agreement.
  const Strands& lost() const { return lost_; }
  /// Why this end wants an agreement, or has its peer do; "": it does not.
  const std::string& why() const { return why_; }

  /// There are no queue pairs to be used.
  bool halted() const { return step_ != Step::Running; }
  /// advance() has something to do.
  bool due() const { return halted() || peerHalts_ || wanted_; }
  /// The peer has said that it stops: what its NICs do not answer from now on says nothing of strands.
  bool peerHalts() const { return peerHalts_; }
  /// Of a frame that came while it runs. Errors: ncclInternalError (nothing that belongs there).
  Status hear(const ControlFrame& frame);
  /// Does what can be done without waiting. Errors: ncclRemoteError (no strand is left); ncclInternalError; those of
  /// resume().
  Status advance();

 private:
  enum class Step : std::uint8_t { Running, Draining, Stopped, Pairing, Connecting, Awaiting };
  Result<bool> step();
  Status stop();
  void tell(ControlFrame::Kind kind, const Strands& strands);
  Result<std::optional<ControlFrame>> take(ControlFrame::Kind kind);
  Status pairUp();
  bool connect();
  Status begin(const Strands& peers);
  Status noneLeft();
  void report(const Strands& before);
  std::string pathsText(const Strands& strands) const;

  const Role role_;
  QueuePairs& pairs_;
  ControlSocket& control_;
  AgreementEnd& end_;
  const std::string who_;
  Step step_ = Step::Running;
  std::uint64_t era_ = 0;
  Strands active_;
  Strands lost_;
  Strands told_;     ///< of lost_, when this end stopped
  Strands revived_;  ///< since the last agreement
  Strands strands_;  ///< of the next era, as far as is known
  bool wanted_ = false;
  std::string why_, peerWhy_;
  bool peerHalts_ = false;  ///< said while this end still ran
  RowsSeen peers_;
  SideBlock remote_;
  Deadline until_ = Deadline::never();  ///< of draining and connecting
};

}  // namespace tutti::net::ib
