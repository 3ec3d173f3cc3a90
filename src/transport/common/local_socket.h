// Packets and file descriptors between processes of one user on one host, over local sockets.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"

namespace tutti::transport {

/// An abstract name: no file system holds it, and it goes with the last descriptor of its socket.
struct LocalName {
  sockaddr_un address{};
  socklen_t length = 0;
  const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&address); }
};

/// What makes a name one that nobody guesses or takes by accident.
inline constexpr std::size_t kNameKeyBytes = 16;
/// "tutti-<purpose>-<key in hexadecimal>". Of a purpose 32 characters count.
LocalName localName(std::string_view purpose, std::span<const std::byte, kNameKeyBytes> key);

/// A socket that packets go through whole, and that never waits; invalid, with errno, where the system has none.
Fd localSocket();

/// Whether the process at the other end of a connected local socket belongs to our user.
bool peerIsOurUser(int line);

/// Again: nothing has come, or the system takes nothing, now. Gone: the other end, or the line, is no more.
enum class PacketIo : std::uint8_t { Done, Again, Gone };

/// One packet, with the descriptor `attached` unless it is negative. Never waits.
PacketIo sendPacket(int line, std::span<const std::byte> packet, int attached = -1);

template <class Message>
std::span<const std::byte> packetOf(const Message& message) {
  static_assert(std::is_trivially_copyable_v<Message>);
  return std::as_bytes(std::span(&message, 1));
}

struct ReceivedPacket {
  PacketIo state = PacketIo::Again;
  std::size_t bytes = 0;
  Fd attached;
};
/// Never waits. What does not fit into `into` is lost, and `bytes` says so by being larger.
ReceivedPacket receivePacket(int line, std::span<std::byte> into);

/// Listens at a name for whoever polls it. Lets in a batch at a time, and rests a little after one with strangers among
/// them: however many come, they cost few wakes, and the kernel keeps who waits. One thread at a time.
class LocalListener {
 public:
  /// Errors: ncclSystemError with the system's words. `about` and `remedy`: what they begin and end with.
  Status open(const LocalName& name, std::string_view about, std::string_view remedy);
  void close();

  /// The next process of our user that has come; of others the lines are closed. Invalid: nobody, for now.
  Fd accept();
  /// The one that accept() gave last is a stranger, and is closed.
  void turnedAway() { strangers_ = true; }
  /// For poll(); -1 while crowded, for then it would stay readable, and its poller would spin, and during a rest.
  int polled() const { return crowded_ || resting() ? -1 : socket_.get(); }
  /// Milliseconds until accept() is to be tried though nothing was readable; -1: there is no need.
  int patience() const;

 private:
  bool resting() const { return !rest_.isNever() && !rest_.expired(); }
  void endBatch();

  Fd socket_;
  bool crowded_ = false;    ///< the last accept() failed for want of descriptors or memory
  bool strangers_ = false;  ///< among those of this batch
  int batch_ = 0;           ///< so many have come in it
  Deadline rest_ = Deadline::never();
};

}  // namespace tutti::transport
