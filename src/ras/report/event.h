// What a monitoring client is told.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <variant>

#include "ras/report/survey.h"

namespace tutti::ras {

enum class EventKind : std::uint8_t {
  PeerNew,   ///< a process has joined the job
  PeerDead,  ///< it is considered dead, by this process or another one
  PeerLeft,  ///< it has said goodbye
  PeerConnecting,
  PeerConnected,
  PeerDisconnected,
  PeerUnresponsive,
  PeerRecovered,
  PeerRetry,
  PeerInitTimeout,
  PeerSendStuck,
  PeerKeepAliveTimeout,
  PeerTimeoutDead,
};
/// "PEER_NEW".
std::string_view eventName(EventKind kind);

/// Groups that a client may ask for, as bits.
enum EventGroup : std::uint8_t { kLifecycle = 1, kTrace = 2 };
EventGroup groupOf(EventKind kind);

/// One thing that has happened. `who`: the process, or only an address where nobody knows it.
struct Event {
  EventKind kind = EventKind::PeerNew;
  std::variant<ProcessFacts, Address> who;
  std::string details;
  std::chrono::system_clock::time_point when;
};

/// "[2026-05-01 12:00:00] PEER_NEW: Process 4711 on node 10.0.0.1 managing GPU 0 details", with a new line.
std::string eventText(const Event& event);
/// One object with a new line.
std::string eventJson(const Event& event);

}  // namespace tutti::ras
