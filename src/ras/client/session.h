// One client: what it has asked, and what it is still to be told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/socket/socket.h"
#include "ras/client/commands.h"
#include "ras/report/event.h"

namespace tutti::ras {

/// A report that somebody waits for.
struct ReportRequest {
  bool json = false;
  bool verbose = false;
  Deadline deadline = Deadline::never();  ///< then it is told what is known
  bool begun = false;                     ///< it has the first part of a text report
  bool asked = false;                     ///< the survey that is under way is for it
};

/// A connection with a client. Never waits; every answer is a copy of its own. Whoever owns it polls fd() for what
/// wantsRead() and wantsWrite() say. Not thread-safe.
class Session {
 public:
  /// Bytes of events and answers that may wait for a client. Reports may be longer, and there is one at most.
  static constexpr std::size_t kMostPending = 1U << 20;

  /// `patience`: for a report, where the client asks for none.
  Session(Socket socket, milliseconds patience) : socket_(std::move(socket)), patience_(patience) {}

  int fd() const { return socket_.fd(); }
  bool ended() const { return !socket_.valid(); }
  bool wantsRead() const { return stage_ == Stage::Commands || stage_ == Stage::Monitor || stage_ == Stage::Draining; }
  bool wantsWrite() const { return !out_.empty() || report_; }

  /// Reads and answers what has come. A request for a report is in request() afterwards, until report().
  void receive();
  ReportRequest* request() { return request_ ? &*request_ : nullptr; }
  /// The first part of a text report.
  void say(std::string text);
  /// The report, or its rest; many may share one. The connection is closed when the client has it.
  void report(std::shared_ptr<const std::string> text);
  /// Tells it where the client wants to know. One that does not keep up is dropped.
  void happened(const Event& event);
  /// Writes what goes.
  void flush();
  /// Drops clients that say nothing, or take nothing, for too long.
  void tend();
  void close() { socket_.close(); }
  /// Bytes that it keeps, reports left out.
  std::size_t held() const { return lines_.held() + out_.size(); }

 private:
  enum class Stage : std::uint8_t {
    Commands,
    Report,       ///< asked for; nothing is read
    Delivering,   ///< all of it is queued
    Draining,     ///< all of it is out: what the client has still said is thrown away, then it is closed
    Monitor,      ///< events go out, and commands are still read
    DeafMonitor,  ///< the client will say nothing more
  };

  void execute(const Command& command);
  bool flush(const std::string& text);
  void onEnd();

  Socket socket_;
  milliseconds patience_;
  Stage stage_ = Stage::Commands;
  LineReader lines_;
  std::string out_;
  std::shared_ptr<const std::string> report_;  ///< goes behind out_
  std::size_t sent_ = 0;                       ///< of what goes first
  bool json_ = false;
  std::uint8_t groups_ = 0;
  std::optional<ReportRequest> request_;
  SteadyClock::time_point active_ = SteadyClock::now();  ///< when something moved last
};

}  // namespace tutti::ras
