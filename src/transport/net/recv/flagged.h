// LL and LL128 at the receiving end of a connection over a network.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/status.h"
#include "device/conn_view.h"
#include "proxy/step_events.h"
#include "trace/points.h"
#include "transport/net/lane/path.h"
#include "transport/net/recv/queue.h"

namespace tutti::net {

/// Receives LL and LL128 beside the slots: messages name their protocol, and lines are written in an order of our own.
class FlaggedRecvLane {
 public:
  FlaggedRecvLane(NetLane& lane, const RecvSetup& setup, Tally& tally);
  ~FlaggedRecvLane() {
    for (const Fifo& fifo : fifos_) fifo.events->close();
  }
  FlaggedRecvLane(const FlaggedRecvLane&) = delete;
  FlaggedRecvLane& operator=(const FlaggedRecvLane&) = delete;
  /// See SimpleRecvLane.
  Result<bool> advance();
  bool networkFailed() const { return queue_.networkFailed(); }
  Result<bool> drain(bool peerHasLeft);
  /// Whether all that may be posted has been answered (lane/parting.h): nothing is, and nothing will be.
  bool ended() const { return partings_ == kMostUnderWay; }
  const LaneReport& report(device::Protocol protocol) const {
    return fifos_[static_cast<std::size_t>(protocol)].report;
  }
  const std::shared_ptr<proxy::StepEvents>& events(std::size_t protocol) const { return fifos_[protocol].events; }

 private:
  static constexpr std::size_t kFlagged = 2;
  using Place = std::uint8_t;
  /// The slots of one protocol.
  struct Fifo {
    explicit Fifo(device::Protocol protocol) : report(protocol) {}
    std::uint64_t arrived = 0;                   ///< steps of which messages have come
    std::uint64_t put = 0;                       ///< steps whose lines have been written
    std::array<Place, kMostUnderWay> placeOf{};  ///< of the steps put .. arrived-1
    /// Of the steps that have come last: at least those that kernels have not read yet.
    std::array<std::uint32_t, 2 * kMostUnderWay> bytes{};
    std::uint64_t sized = 0;  ///< steps whose sizes profilers know
    std::shared_ptr<proxy::StepEvents> events;
    LaneReport report;
  };
  std::byte* messageAt(std::size_t place) const { return messages_ + place * room_; }
  Result<bool> post();
  Result<bool> take();
  /// A message that has come to `place`.
  Status enter(Place place, std::size_t received);
  bool put(device::Protocol protocol);
  /// Tells profilers how far it has come.
  void tell();

  NetLane& lane_;
  const NetPath& path_;
  const device::RecvConn& view_;
  Tally& tally_;
  std::byte* messages_;
  std::size_t room_;
  std::optional<Place> refused_;  ///< that the network had no room for: it is asked again with the same
  // Receives end in the order in which they were posted; places come free in another one.
  RecvQueue queue_;
  std::array<trace::Requests, kFlagged> requests_;  ///< by protocol
  int partings_ = 0;
  std::array<Place, kMostUnderWay> order_{};
  std::uint32_t free_ = (1u << kMostUnderWay) - 1;  ///< a bit for each place
  std::array<Fifo, kFlagged> fifos_{Fifo(device::Protocol::LL), Fifo(device::Protocol::LL128)};
};

/// Bytes of TaskSetup::messages.
std::size_t receiverMessageBytes(const device::SlotBytes& slotBytes);

}  // namespace tutti::net
