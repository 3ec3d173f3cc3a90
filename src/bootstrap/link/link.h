// One bootstrap connection: handshake, then frames, never blocking.
#pragma once

#include <cerrno>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "base/socket/socket.h"
#include "bootstrap/link/handshake.h"
#include "bootstrap/link/wire.h"

namespace tutti::bootstrap {

/// A connected socket with its handshake and framing. Reads and writes only what goes without waiting; the owner polls
/// fd() and calls receive() when it is readable and flush() when it is writable and wantsWrite(). Not thread-safe.
class Link {
 public:
  /// How a link ended.
  struct End {
    enum class Kind { Closed, Broken, Refused };
    Kind kind = Kind::Closed;
    int error = 0;                  ///< errno where the system broke it, or the other side reset it
    Verdict verdict = Verdict::Ok;  ///< where Refused: how the handshake failed
    std::uint16_t version = 0;      ///< after OtherVersion, on the side that connected: the other side's

    /// This side has ended it, for it had no host memory for what came.
    bool noMemory() const { return kind == Kind::Broken && error == ENOMEM; }
  };

  /// The side that accepted. `maxFrame`: larger payloads end the link.
  Link(Socket socket, ServerHandshake server, std::uint32_t maxFrame);
  /// The side that connected; the hello, but for the `said` bytes of it that have gone out, goes out at the next
  /// flush().
  Link(Socket socket, ClientHandshake client, std::uint32_t maxFrame, std::size_t said = 0);

  int fd() const { return socket_.fd(); }
  const Address& peer() const { return socket_.peer(); }
  /// Both sides have proved who they are.
  bool open() const { return stage_ == Stage::Header || stage_ == Stage::Payload; }
  /// Of an accepted one: its client has shown a pass, overheard or its own. Strangers do not get so far.
  bool passed() const { return stage_ != Stage::AwaitHello; }
  const std::optional<End>& end() const { return end_; }
  /// What the accepted side learned of its client; meaningful once open.
  Purpose purpose() const { return std::get<ServerHandshake>(handshake_).purpose(); }
  int clientRank() const { return std::get<ServerHandshake>(handshake_).clientRank(); }

  /// Queues a frame; it goes out once the link is open. The payload is shared, not copied, unless it is small.
  void send(FrameType type, std::int32_t tag, const SharedBytes& payload, std::uint8_t op = 0);
  /// Reads what has come and appends complete frames. Check end() afterwards.
  void receive(std::vector<Frame>& frames);
  /// Reads no further than the first message of the other side: its hello or its challenge.
  void receiveGreeting();
  /// The same, after `first`, which has been read already: no more than a hello, from its beginning.
  void receiveGreeting(std::span<const std::byte> first);
  /// Writes what goes. A peer that is gone shows itself at the next receive().
  void flush();
  bool wantsWrite() const { return !early_.empty() || (open() && !out_.empty()); }
  /// Nothing is left to write, or nothing can be.
  bool drained() const { return writeFailed_ || (early_.empty() && out_.empty()); }
  /// A frame was queued that has not gone out.
  bool undelivered() const { return writeFailed_ || !out_.empty(); }

 private:
  enum class Stage : std::uint8_t { AwaitHello, AwaitProof, AwaitChallenge, Header, Payload };

  void expect(Stage stage, std::size_t bytes);
  void onComplete(std::vector<Frame>& frames);
  void onHello();
  void onProof();
  void onChallenge();
  void onHeader(std::vector<Frame>& frames);
  void refuse(Verdict verdict);
  /// Whether the client may go on, as far as its hello has come.
  bool greet();
  bool readOn(std::vector<Frame>& frames);
  bool cameIn(std::size_t bytes, std::vector<Frame>& frames);
  bool flushQueue(std::deque<SharedBytes>& queue);

  Socket socket_;
  std::variant<ServerHandshake, ClientHandshake> handshake_;
  std::uint32_t maxFrame_;
  Stage stage_ = Stage::AwaitHello;
  Bytes in_;             ///< what is being read, at its full size
  std::size_t got_ = 0;  ///< bytes of it that have come
  FrameHeader header_;
  std::deque<SharedBytes> early_;  ///< handshake bytes: go before the link is open
  std::deque<SharedBytes> out_;
  std::size_t sent_ = 0;  ///< bytes of the first chunk that are out
  bool writeFailed_ = false;
  std::optional<End> end_;
};

}  // namespace tutti::bootstrap
