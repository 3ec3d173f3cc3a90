// Calls on non-blocking sockets that say how they ended, and nothing else.
#pragma once

#include <sys/uio.h>

#include <span>

#include "base/socket.h"
#include "transport/net/socket/socket_options.h"

namespace tutti {

/// As much as goes in one call without waiting: Done with the bytes moved, WouldBlock, Closed (`error`: errno, 0 at the
/// end of the stream) or Failed.
IoOutcome sendParts(int fd, std::span<iovec> parts);
IoOutcome receiveParts(int fd, std::span<iovec> parts);

/// How a connection that stands by has ended, on which nothing is expected yet; WouldBlock: it stands. Reads nothing.
IoOutcome standsBy(int fd);

/// No delay, buffers as the options say, and an end to waiting for a host that does not answer any more. A system that
/// refuses still works.
void tuneSocket(int fd, const SocketOptions& options);

/// For a sender whose socket has just been connected: does not run far ahead of a peer on the same host, unless the
/// options say otherwise.
void tuneConnected(int fd, const SocketOptions& options);

}  // namespace tutti
