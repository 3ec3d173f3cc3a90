// What a connection waits for, from its counters: plain facts -> text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "comm/connect/link_types.h"
#include "device/conn_view.h"

namespace tutti::comm {

/// One end of a connection that the operation under way uses, and what its counters say.
struct EndReading {
  int channel = 0;
  int peer = -1;
  device::ConnKind kind = device::ConnKind::Graph;
  device::Direction direction = device::Direction::Send;
  device::Protocol protocol = device::Protocol::Simple;
  std::string transport;       ///< Endpoint::description()
  std::uint64_t produced = 0;  ///< slots that the sender has filled; LL and LL128 do not count them
  std::uint64_t consumed = 0;  ///< slots that the receiver has taken
  bool left = false;           ///< the peer has said goodbye: its counters are not read
  bool starves = false;        ///< a host thread in between has nothing for us, and the network brings it nothing
  std::string task = {};       ///< what the host thread in between says of itself; empty: there is none
};

/// A number that differs when any of them has moved, or any of `others`.
std::uint64_t fingerprintOf(std::span<const EndReading> ends, std::span<const std::uint64_t> others);

/// What an end is at.
struct EndWait {
  bool waits = false;  ///< it cannot go on before the peer does something
  std::string text;    ///< "waits for rank 3 to fill slot 18"
};

/// Unset where there is nothing to wait for and nothing under way.
std::optional<EndWait> waitOf(const EndReading& end);

/// "channel 0, from rank 3 (host b, device 1) by P2P/IPC, Simple, 18 slots received: waits for rank 3 to fill slot 18".
/// `peer`: that rank, for people.
std::string describeEnd(const EndReading& end, const std::string& peer, const EndWait& wait);

}  // namespace tutti::comm
