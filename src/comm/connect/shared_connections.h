// The connections of a family of communicators: opened once, used by all of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ranks/abort.h"
#include "base/status.h"
#include "comm/connect/link_types.h"
#include "device/conn_view.h"

namespace tutti::gpu {
class Device;
}
namespace tutti::proxy {
class ProgressGroup;
class ProgressTask;
}  // namespace tutti::proxy
namespace tutti::transport {
class Endpoint;
}

namespace tutti::comm {

/// Which connection of a rank it is. Two communicators may want slots of different sizes: then they have two.
struct SharedKey {
  int peer = -1;  ///< in the family's numbering
  int channel = 0;
  device::ConnKind kind = device::ConnKind::Graph;
  device::Direction direction = device::Direction::Send;
  device::SlotBytes slotBytes{};
  friend auto operator<=>(const SharedKey&, const SharedKey&) = default;
};

/// One end of a shared connection.
struct SharedEnd {
  std::shared_ptr<transport::Endpoint> endpoint;  ///< null: there is none
  Fallback fallback;
  std::size_t transport = 0;  ///< its number in the list
};

/// One rank's ends, by key; they live as long as this. All ranks of a family issue its operations in the same order, so
/// a connection is there for both of its ends or for neither. Where a kernel goes on lies in the connection's own
/// memory (ConnFifos::step), so communicators may use it in turn. Any thread.
class SharedConnections {
 public:
  SharedConnections();
  SharedConnections(const SharedConnections&) = delete;
  ~SharedConnections();

  SharedEnd find(const SharedKey& key) const;
  /// Errors: of who drives what a host thread has to.
  Status add(const SharedKey& key, SharedEnd end);
  std::size_t size() const;

  /// Who sends on, beside the groups of the communicators that use a connection, what one of these has left when it
  /// ends: no other one may have that connection. A failure is an INFO line; who uses the connection hears of it from
  /// its own group. Before the first add().
  void driveBy(std::unique_ptr<proxy::ProgressGroup> caretaker);
  /// The group of a communicator that drives some of them, until notDrivenBy(); null: none.
  void alsoDrivenBy(proxy::ProgressGroup* group);
  void notDrivenBy(const proxy::ProgressGroup* group);
  /// One of them has ended: what it sent is to go.
  void tend();
  /// Whether all has gone that was to when tend() was called last.
  bool rests() const;
  /// The caretaker goes; its hooks may be about to.
  void stopCaring();

  /// Before the last user lets go: waits until peers have taken what was sent over any of them, and lets their memory
  /// be freed with them. Peers that are not heard of any more may never do so: what they may still write to stays
  /// allocated after `bound`. `about` begins the warning. The device's context must be current. Errors: the driver's.
  Status settle(const gpu::Device& device, const std::string& about, milliseconds bound);
  /// The same where they are to be opened again: after `bound` an ncclRemoteError, and that of `abort` at once.
  Status awaitTaken(const gpu::Device& device, const std::string& about, milliseconds bound, const Abort& abort);

  /// As ChannelSet has them; never waits where there is a `peer`. Of all of them the caretaker drives receivers, too,
  /// from then on, which nobody else may do any more.
  void part(std::optional<int> peer = {});
  bool parted() const;

  /// As ChannelSet has them; with the only communicator that is left. Nobody drives them any more.
  void detach();
  void close(device::Direction direction);

 private:
  class Leftover;
  /// An end, and what the caretaker drives of it; null: nothing.
  struct Kept {
    SharedEnd end;
    std::unique_ptr<proxy::ProgressTask> leftover;
  };
  void leaveAlone(const Kept& kept);
  Status leaveToCaretaker(Kept& kept);
  std::vector<std::pair<SharedKey, SharedEnd>> all() const;

  mutable std::mutex mutex_;  ///< never held for longer than a round of the engine takes
  std::map<SharedKey, Kept> ends_;
  std::vector<proxy::ProgressGroup*> groups_;
  std::unique_ptr<proxy::ProgressGroup> caretaker_;  ///< goes before the ends
};

}  // namespace tutti::comm
