// The Simple protocol at the sending end of a connection over a network.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/status.h"
#include "device/conn_view.h"
#include "proxy/step_events.h"
#include "trace/points.h"
#include "transport/net/lane/memory_registrar.h"
#include "transport/net/lane/path.h"
#include "transport/net/send/queue.h"

namespace tutti::net {

/// Sends slots of the Simple protocol from where they lie, or what the kernel offers instead of them.
class SimpleSendLane {
 public:
  /// What the references name must outlive the lane.
  SimpleSendLane(NetLane& lane, const SendSetup& setup, Tally& tally);
  ~SimpleSendLane() { events_->close(); }
  SimpleSendLane(const SimpleSendLane&) = delete;
  SimpleSendLane& operator=(const SimpleSendLane&) = delete;
  /// An error with failedIn(): see there.
  Result<bool> advance();
  /// See SendQueue.
  const char* failedIn() const { return queue_.failedIn(); }
  /// The peer has left: it has got whatever it wanted. Errors: ncclInvalidUsage, a kernel sends more.
  Status abandon();
  bool quiet() const;
  const LaneReport& report() const { return report_; }
  const std::shared_ptr<proxy::StepEvents>& events() const { return events_; }

 private:
  struct Message {
    std::uint32_t bytes = 0;
    bool offered = false;                     ///< it lies in memory of the application's
    std::optional<std::uint32_t> place = {};  ///< the shared slot that it has
    std::optional<RegisteredUse> user = {};   ///< it is sent from there …
    bool spare = false;                       ///< … or from `spare_`
  };
  /// What the kernel has made, and what is to be remembered of it.
  Result<plugin::NetBuffer> messageOf(std::uint64_t step, Message& made) const;
  /// Where what the kernel offers is sent from, if the network has to know it. false: it has to wait.
  Result<bool> settle(plugin::NetBuffer& message, Message& made);
  void release(const Message& made);
  Result<bool> post();
  Result<bool> finish();
  void finishOne();
  /// Tells profilers how far it has come.
  void tell();

  NetLane& lane_;
  const NetPath& path_;
  const device::SendConn& view_;
  Tally& tally_;
  std::uint64_t seen_;  ///< of the tail
  SendQueue queue_;
  SlotStore* shared_;  ///< null: slots of its own
  std::array<Message, device::kSteps> messages_{};
  SpareMemory::Kept spare_;  ///< for what was offered and cannot be sent from where it lies
  bool spareTaken_ = false;
  trace::Requests requests_;
  const std::shared_ptr<proxy::StepEvents> events_;  ///< what a plugin's requests refer to outlives the lane
  LaneReport report_{device::Protocol::Simple};
};

}  // namespace tutti::net
