// Calls on non-blocking sockets that say how they ended, and nothing else.
#pragma once

#include <sys/uio.h>

#include <span>

#include "base/socket/address.h"
#include "base/socket/io_outcome.h"
#include "transport/net/tcp/options.h"

namespace tutti::net::tcp {

/// As much as goes in one call without waiting: Done with the bytes moved, WouldBlock, Closed (`error`: errno, 0 at the
/// end of the stream) or Failed.
IoOutcome sendParts(int fd, std::span<iovec> parts);
IoOutcome receiveParts(int fd, std::span<iovec> parts);

/// How a connection that stands by has ended, on which nothing is expected yet; WouldBlock: it stands. Reads nothing.
IoOutcome standsBy(int fd);

/// No delay, buffers as the options say, and an end to waiting for a host that does not answer any more. A system that
/// refuses still works.
void tuneSocket(int fd, const SocketOptions& options);

/// For a sender's socket before it is connected: on the way to `peer` on this host the system shall not hold it back
/// for a congestion that cannot be. (BBR measures and paces, which makes 256 KB take 1.3 times as long in the first
/// tenth of a second. A socket that has been connected with BBR stays paced.) To other hosts the system's choice
/// stands, or the route's.
void dropPacing(int fd, const Address& peer);
/// For a sender whose socket has just been connected: does not run far ahead of a peer on the same host, unless the
/// options say otherwise.
void tuneConnected(int fd, const SocketOptions& options);
/// Whether the send buffer of a connected socket is ours to size: both ends are on one host, and the options say
/// nothing.
bool sizesSendBuffer(int fd, const SocketOptions& options);
/// Sizes it for messages of `longest` bytes. To a peer on the same host nothing is on the way for long, and what a
/// sender is ahead of its peer only drives both out of the processors' caches: one megabyte each way in pieces of 128
/// KB took a quarter longer with the system's choice. But a message of 512 KB that has room takes a fifth less time
/// than one that has not.
void sizeSendBuffer(int fd, std::size_t longest);
inline constexpr std::size_t kLeastSendBuffer = 256 << 10;
inline constexpr std::size_t kMostSendBuffer = 512 << 10;

}  // namespace tutti::net::tcp
