// The sending end of a connection over a network: takes the slots that a kernel has filled to the network.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "device/conn_view.h"
#include "proxy/task.h"
#include "transport/net/lane/lane_shutdown.h"
#include "transport/net/lane/parting.h"
#include "transport/net/lane/path.h"
#include "transport/net/lane/tally.h"

namespace tutti::net {

class FlaggedSendLane;
class PartingSends;
class SimpleSendLane;

/// See proxy/task.h. Does not own the network connections.
class NetSender final : public proxy::ProgressTask {
 public:
  explicit NetSender(const SendSetup& setup);
  ~NetSender() override;
  Result<bool> advance() override;
  bool quiet() const override;
  void part() override;
  bool parted() const override { return !parting_.pending(); }
  bool presses() const override;
  proxy::TaskCounters counters() const override { return tally_.read(); }
  std::string describe() const override;
  std::shared_ptr<proxy::StepEvents> stepEvents(std::size_t protocol) const override;
  proxy::PendingSend hold() const override;
  /// Where it stands. Any thread.
  LaneFacts facts() const;

 private:
  static constexpr std::size_t kFlagged = 2;
  /// What kernels have made, as far as the lanes may take it.
  Result<bool> collectFlagged();
  Result<bool> finishInOrder();
  /// What the network does with it.
  Result<bool> moveFlagged();
  Result<bool> advanceFlagged();
  Result<bool> advanceSimple();
  Result<bool> sendInOrder();
  const char* flaggedFailedIn() const;
  void preparePartings(const SendSetup& setup);
  /// Answers what the peer has posted, when all that kernels have made has gone.
  bool advanceParting();
  /// Asks the network from time to time whether what was sent comes through.
  void checkDelivery();
  /// Whether the network has delivered all.
  bool delivered() const;

  SendSetup setup_;
  Tally tally_;
  mutable LaneShutdown simpleEnd_;  ///< quiet() asks the network, too, and may find that it fails
  mutable LaneShutdown flaggedEnd_;
  mutable std::atomic<bool> delivered_{true};  ///< when it was asked last
  unsigned turns_ = 0;
  SteadyClock::time_point nextCheck_{};
  std::unique_ptr<SimpleSendLane> simple_;  ///< null: not offered; likewise
  std::array<std::unique_ptr<FlaggedSendLane>, kFlagged> flagged_;
  Parting parting_;
  std::unique_ptr<PartingSends> simplePartings_;   ///< null: nothing is posted ahead there
  std::unique_ptr<PartingSends> flaggedPartings_;  ///< the same
};

}  // namespace tutti::net
