// Connecting to a root or a rank, handshake included.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/ranks/abort.h"
#include "base/socket/address.h"
#include "bootstrap/link/handshake.h"
#include "bootstrap/link/link.h"

namespace tutti::bootstrap {

/// Whom to call, and as whom.
struct DialTarget {
  Address at;
  Key key{};
  Purpose purpose = Purpose::Peer;
  int clientRank = -1;
  int serverRank = -1;
  std::uint32_t maxFrame = 0;
};

/// What bounds it.
struct DialLimits {
  Deadline listening = Deadline::never();  ///< how long nobody may listen there
  Deadline deadline = Deadline::never();   ///< how long the other side may turn this one away
  milliseconds answer{10'000};             ///< how long it may leave a connection without an answer
  const Abort* abort = nullptr;            ///< may be null
  milliseconds refusals{0};                ///< how long it may refuse outright, where less than `listening`; 0: so long
  std::function<Status()> stop;            ///< asked now and then; an error ends it; may be empty
};

/// How it went.
struct Dialed {
  enum class Kind : std::uint8_t {
    Open,           ///< `link` is open
    Stopped,        ///< by `limits.abort` or `limits.stop`: `why`
    OwnTrouble,     ///< this process cannot connect to anybody: `error`
    NobodyListens,  ///< `error`: refused, or no way there
    Silent,         ///< somebody listens, and nobody answers
    TurnedAway,     ///< connections are closed before the other side has said anything
    Refused,        ///< the other side is another one: `verdict`, and `version` after OtherVersion
  };
  Kind kind = Kind::Open;
  std::unique_ptr<Link> link;
  Status why;
  int error = 0;
  Verdict verdict = Verdict::Ok;
  std::uint16_t version = 0;
  milliseconds waited{0};  ///< where Silent
};

/// Connects and proves itself. Tries again where nobody listens yet, and where the other side has no room for another
/// unproven connection just now (paced_listener.h). Logs nothing. Any thread.
Dialed dial(const DialTarget& target, const DialLimits& limits);

}  // namespace tutti::bootstrap
