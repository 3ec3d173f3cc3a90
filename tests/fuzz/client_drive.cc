#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <memory>

#include "base/fd.h"
#include "protocol.h"
#include "ras/client/session.h"
#include "ras_drive.h"

namespace tutti::fuzz {

namespace {

using ras::Session;
using Stage = ProtocolModel::Stage;

/// Marks an order to the driver.
constexpr char kOrder = '\xff';
constexpr int kManyEvents = 4;
constexpr std::size_t kManyBytes = 8000;  ///< of each of them
constexpr std::size_t kPiece = 64U << 10;
/// Besides what waits to be sent: lines that have come in part, and the answers to one piece of short lines.
constexpr std::size_t kMostBesides = 32U << 10;

ras::Event eventOf(ras::EventKind kind, std::size_t bytes) {
  ras::ProcessFacts process;
  process.id = 1;
  process.address = Address::loopback(AF_INET, 4711);
  process.pid = 12;
  process.cudaDevices = process.nvmlDevices = 3;
  return {kind, process, std::string(bytes, 'd'), std::chrono::system_clock::time_point{}};
}

/// A session, its client, and what the client should hear.
class Dialogue {
 public:
  /// What the client says goes out at each order, and in pieces of that many bytes at most.
  explicit Dialogue(std::size_t longest) : longest_(longest) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
    client_ = Fd(ends[0]);
    session_ = std::make_unique<Session>(Socket(Fd(ends[1]), {}), milliseconds(5000));
  }

  std::string run(std::string_view script) {
    if (!session_) return "no sockets";
    for (std::size_t i = 0; i < script.size() && wrong_.empty(); ++i) {
      if (script[i] != kOrder || i + 1 == script.size() || !obey(script[i + 1])) {
        say(script[i]);
      } else {
        ++i;
      }
    }
    deliver();
    paused_ = false;
    if (client_.valid()) pump();
    return wrong_.empty() ? verdict() : wrong_;
  }

 private:
  void say(char byte) {
    if (silent_) return;
    said_ += byte;
    if (said_.size() == longest_) deliver();
  }

  /// False: there is no such order.
  bool obey(char order) {
    switch (order) {
      case 'd':  // what was said so far arrives
        deliver();
        return true;
      case 'e':
        return happen(ras::EventKind::PeerNew, 1);
      case 't':
        return happen(ras::EventKind::PeerConnected, 1);
      case 'm':
        return happen(ras::EventKind::PeerLeft, kManyEvents);
      case 'b':
        return begin();
      case 'r':
        return report(100);
      case 'R':  // longer than any queue
        return report(1U << 20);
      case 'h':  // the client closes its half
      case 'c':  // it is gone
        return end(order == 'c');
      case 'p':  // it reads nothing
      case 'g':  // it reads again
        deliver();
        paused_ = order == 'p';
        pump();
        return true;
      case 'k':  // it reads a little
        deliver();
        hear(kPiece);
        pump();
        return true;
      case 'w':
        deliver();
        session_->tend();
        check();
        return true;
    }
    return false;
  }

  void deliver() {
    for (const char byte : said_) model_.said(byte);
    std::string_view rest = said_;
    while (!rest.empty() && client_.valid()) {
      const ssize_t sent = ::send(client_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent > 0) rest.remove_prefix(static_cast<std::size_t>(sent));
      pump();
      if (sent <= 0) break;
    }
    said_.clear();
  }

  bool happen(ras::EventKind kind, int times) {
    deliver();
    const ras::Event event = eventOf(kind, times > 1 ? kManyBytes : 7);
    const std::string text = ras::eventText(event);
    const std::string json = ras::eventJson(event);
    for (int i = 0; i < times && !dropped_; ++i) {
      model_.happened(ras::groupOf(kind), text, json);
      session_->happened(event);
      check();
    }
    pump();
    return true;
  }

  bool begin() {
    deliver();
    if (ras::ReportRequest* const request = session_->request(); request && !request->begun && !session_->ended()) {
      request->begun = true;
      model_.firstPart("first part\n");
      session_->say("first part\n");
    }
    pump();
    return true;
  }

  bool report(std::size_t bytes) {
    deliver();
    if (session_->request() && !session_->ended()) {
      const auto text = std::make_shared<const std::string>(bytes, 'x');
      model_.report(*text);
      session_->report(text);
    }
    pump();
    return true;
  }

  bool end(bool altogether) {
    deliver();
    silent_ = true;
    if (altogether) {
      client_.reset();
      session_->receive();
    } else {
      ::shutdown(client_.get(), SHUT_WR);
      model_.saidNothingMore();
      pump();
    }
    return true;
  }

  /// What goes to and fro until nothing does.
  void pump() {
    bool moved = true;
    while (moved && !session_->ended()) {
      if (session_->wantsWrite()) session_->flush();
      if (session_->wantsRead()) session_->receive();
      check();
      moved = !paused_ && hear(kPiece) > 0;
    }
    if (session_->ended() && !paused_) {
      while (hear(kPiece) > 0) {
      }
    }
  }

  std::size_t hear(std::size_t most) {
    if (!client_.valid()) return 0;
    const ssize_t got = ::recv(client_.get(), piece_.data(), most, 0);
    over_ = over_ || got == 0;
    if (got <= 0) return 0;
    heard_.append(piece_.data(), static_cast<std::size_t>(got));
    return static_cast<std::size_t>(got);
  }

  void check() {
    if (session_->held() > Session::kMostPending + kMostBesides) wrong_ = "a session keeps too much";
    const Stage stage = model_.stage();
    if (session_->ended() && client_.valid() && stage != Stage::Closed && stage != Stage::Over) dropped_ = true;
    const ras::ReportRequest* const request = session_->request();
    if (session_->ended() || (request != nullptr) != (stage == Stage::Report)) return;
    if (!request) return;
    if (request->json != model_.json() || request->verbose != model_.verbose())
      wrong_ = "another report than asked for";
    if (request->deadline.isNever() != (model_.timeout() == 0)) wrong_ = "another patience than asked for";
  }

  std::string verdict() {
    if (!client_.valid()) return "";
    const std::string& owed = model_.heard();
    if (dropped_) {
      if (!owed.starts_with(heard_)) return "what a client hears before it is dropped is wrong";
      return owed.size() - heard_.size() >= Session::kMostPending ? "" : "a client is dropped that has kept up";
    }
    if (heard_ != owed) {
      return fmt::format("pieces of {}: heard {} bytes that end in \"{}\", but owed are {} that end in \"{}\"",
                         longest_, heard_.size(), tail(heard_), owed.size(), tail(owed));
    }
    const bool closed = model_.stage() == Stage::Closed || model_.stage() == Stage::Over;
    hear(1);
    if (closed && !over_ && !session_->ended()) return "the connection does not end";
    if (!closed && session_->ended()) return "the connection ends";
    return "";
  }

  static std::string_view tail(std::string_view text) {
    return text.substr(text.size() - std::min<std::size_t>(text.size(), 80));
  }

  const std::size_t longest_;
  Fd client_;
  std::unique_ptr<Session> session_;
  ProtocolModel model_;
  std::array<char, kPiece> piece_;
  std::string said_;
  std::string heard_;
  std::string wrong_;
  bool silent_ = false;   ///< the client has said all
  bool paused_ = false;   ///< it reads nothing
  bool over_ = false;     ///< it has heard the end
  bool dropped_ = false;  ///< though the protocol does not have it
};

}  // namespace

std::string driveClient(std::string_view script) {
  constexpr std::size_t kPieces = 40;  // of a long script; a short one goes byte by byte
  std::string wrong = Dialogue(script.size() + 1).run(script);
  if (wrong.empty()) wrong = Dialogue(1 + script.size() / kPieces).run(script);
  return wrong;
}

}  // namespace tutti::fuzz
