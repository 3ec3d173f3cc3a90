// The first message over each network connection: what only this sender would say to this receiver.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/net/lane/path.h"

namespace tutti::net {

/// Trivially copyable; at most kProbeBytes.
struct ProbeMessage {
  static constexpr std::uint32_t kMagic = 0x70726f62;
  std::uint32_t magic = kMagic;
  std::int32_t from = -1;
  std::int32_t to = -1;
  std::int32_t channel = -1;
  std::uint32_t kind = 0;
  std::uint32_t join = 0;
};

/// `join`: which of a connection's two network connections it is.
inline ProbeMessage probeOf(const NetPath& path, std::size_t join) {
  const bool sends = path.direction == device::Direction::Send;
  ProbeMessage probe;
  probe.from = sends ? path.link.self.rank : path.link.peer.rank;
  probe.to = sends ? path.link.peer.rank : path.link.self.rank;
  probe.channel = path.link.channel;
  probe.kind = static_cast<std::uint32_t>(path.link.kind);
  probe.join = static_cast<std::uint32_t>(join);
  return probe;
}

}  // namespace tutti::net
