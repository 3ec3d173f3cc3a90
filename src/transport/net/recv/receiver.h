// The receiving end of a connection over a network: brings what arrives into slots that kernels read.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/status.h"
#include "proxy/task.h"
#include "transport/net/lane/lane_shutdown.h"
#include "transport/net/lane/parting.h"
#include "transport/net/lane/path.h"
#include "transport/net/lane/tally.h"

namespace tutti::net {

class FlaggedRecvLane;
class SimpleRecvLane;

/// See proxy/task.h. Does not own the network connections.
class NetReceiver final : public proxy::ProgressTask {
 public:
  explicit NetReceiver(const RecvSetup& setup);
  ~NetReceiver() override;
  Result<bool> advance() override;
  /// What arrives can wait until a kernel wants it.
  bool quiet() const override { return !parting_.pending(); }
  void part() override;
  bool parted() const override { return !parting_.pending(); }
  proxy::TaskCounters counters() const override { return tally_.read(); }
  std::string describe() const override;
  std::shared_ptr<proxy::StepEvents> stepEvents(std::size_t protocol) const override;
  bool starves(std::size_t protocol) const override;

 private:
  const LaneReport* reportOf(device::Protocol protocol) const;
  bool partsSimple() const { return simple_ != nullptr && setup_.simple->parts; }
  bool partsFlagged() const { return flagged_ != nullptr && setup_.flagged->parts; }
  /// Whether nothing is posted any more where that is to be so.
  bool nothingPosted();
  template <class Lane>
  Result<bool> advanceLane(Lane& lane, LaneShutdown& end);

  RecvSetup setup_;
  Tally tally_;
  LaneShutdown simpleEnd_;
  LaneShutdown flaggedEnd_;
  std::unique_ptr<SimpleRecvLane> simple_;  ///< null: not offered; likewise
  std::unique_ptr<FlaggedRecvLane> flagged_;
  Parting parting_;
};

}  // namespace tutti::net
