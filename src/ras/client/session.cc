#include "ras/client/session.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <span>
#include <utility>

namespace tutti::ras {

namespace {

constexpr milliseconds kIdle{60'000};
constexpr milliseconds kStuck{20'000};
constexpr milliseconds kDrain{2'000};
/// The report of a client that has nothing else to say is read on the fly; more than so many bytes are left to later.
constexpr int kReads = 16;

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

}  // namespace

void Session::say(std::string text) {
  if (ended()) return;
  if (out_.empty()) {
    active_ = SteadyClock::now();
  } else {
    // A client that always has something to read, and reads it, is owed no more for that.
    out_.erase(0, std::exchange(sent_, 0));
  }
  out_ += text;
  flush();
}

void Session::execute(const Command& command) {
  std::visit(
      Overloaded{
          [&](const HandshakeCommand&) { say(fmt::format("SERVER PROTOCOL {}\n", kClientProtocol)); },
          [&](const TimeoutCommand& timeout) {
            patience_ = std::chrono::seconds(timeout.seconds);
            say("OK\n");
          },
          [&](const FormatCommand& format) {
            json_ = format.json;
            say("OK\n");
          },
          [&](const StatusCommand& status) {
            const bool bounded = patience_ > milliseconds(0);
            request_ = ReportRequest{json_, status.verbose, bounded ? Deadline::in(patience_) : Deadline::never()};
            stage_ = Stage::Report;
          },
          [&](const MonitorCommand& monitor) {
            groups_ = monitor.groups;
            stage_ = Stage::Monitor;
            say("OK\n");
          },
          [&](const WrongCommand& wrong) { say(wrong.reply); },
      },
      command);
}

/// The client has closed at least its half. It may still want to hear.
void Session::onEnd() {
  if (stage_ == Stage::Monitor) {
    stage_ = Stage::DeafMonitor;
  } else if (wantsWrite()) {
    stage_ = Stage::Delivering;
  } else {
    close();
  }
}

void Session::receive() {
  std::array<std::byte, 1024> piece;
  for (int i = 0; i < kReads && !ended() && wantsRead(); ++i) {
    const IoOutcome got = socket_.tryRecv(piece);
    if (got.kind == IoOutcome::Kind::WouldBlock) return;
    if (got.kind == IoOutcome::Kind::Closed) return onEnd();
    if (!got.done()) return close();
    if (stage_ == Stage::Draining) continue;
    active_ = SteadyClock::now();
    lines_.add({reinterpret_cast<const char*>(piece.data()), got.bytes});
    while (stage_ == Stage::Commands || stage_ == Stage::Monitor) {
      const auto line = lines_.next();
      if (!line) break;
      execute(parseCommand(*line));
    }
    if (lines_.tooLong() || out_.size() > kMostPending) return close();
  }
}

void Session::report(std::shared_ptr<const std::string> text) {
  if (ended()) return;
  request_.reset();
  stage_ = Stage::Delivering;
  report_ = std::move(text);
  active_ = SteadyClock::now();
  flush();
}

void Session::happened(const Event& event) {
  if (ended() || (groupOf(event.kind) & groups_) == 0) return;
  if (stage_ != Stage::Monitor && stage_ != Stage::DeafMonitor) return;
  if (out_.size() > kMostPending) return close();
  say(json_ ? eventJson(event) : eventText(event));
}

/// Whether all of it has gone.
bool Session::flush(const std::string& text) {
  while (sent_ < text.size()) {
    const IoOutcome sent = socket_.trySend(std::as_bytes(std::span(text)).subspan(sent_));
    if (sent.kind == IoOutcome::Kind::WouldBlock) return false;
    if (!sent.done()) {
      close();
      return false;
    }
    sent_ += sent.bytes;
    active_ = SteadyClock::now();
  }
  sent_ = 0;
  return true;
}

void Session::flush() {
  if (!out_.empty()) {
    if (!flush(out_)) return;
    out_ = {};
  }
  if (report_ && !flush(*report_)) return;
  report_.reset();
  if (stage_ != Stage::Delivering) return;
  // Closed with bytes unread, the connection would be reset, and the client lose the end of its report.
  stage_ = Stage::Draining;
  active_ = SteadyClock::now();
  static_cast<void>(::shutdown(fd(), SHUT_WR));
}

void Session::tend() {
  if (ended()) return;
  const auto quiet = SteadyClock::now() - active_;
  const bool idle = stage_ == Stage::Commands && quiet > kIdle;
  const bool stuck = wantsWrite() && quiet > kStuck;
  const bool drained = stage_ == Stage::Draining && quiet > kDrain;
  if (idle || stuck || drained) close();
}

}  // namespace tutti::ras
