// The connections of a family of communicators: opened once, used by all of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/abort.h"
#include "base/clock.h"
#include "base/status.h"
#include "comm/connect/link_types.h"
#include "device/conn_view.h"

namespace tutti::gpu {
class Device;
}
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
  SharedConnections() = default;
  SharedConnections(const SharedConnections&) = delete;
  ~SharedConnections();

  SharedEnd find(const SharedKey& key) const;
  void add(const SharedKey& key, SharedEnd end);
  std::size_t size() const;

  /// Before the last user lets go: waits until peers have taken what was sent over any of them, and lets their memory
  /// be freed with them. Peers that are not heard of any more may never do so: what they may still write to stays
  /// allocated after `bound`. `about` begins the warning. The device's context must be current. Errors: the driver's.
  Status settle(const gpu::Device& device, const std::string& about, milliseconds bound);

  /// As ChannelSet has them; with the only communicator that is left.
  void detach();
  void close(device::Direction direction);

 private:
  mutable std::mutex mutex_;
  std::map<SharedKey, SharedEnd> ends_;
};

}  // namespace tutti::comm
