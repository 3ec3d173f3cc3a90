// How the ranks of one communicator exchange small host messages, whatever carries them.
#pragma once

#include <cstddef>
#include <span>

#include "base/clock.h"
#include "base/status.h"

namespace tutti {

/// Small host messages between the ranks of one communicator. Everybody who needs to agree with other ranks takes
/// this interface, so a test passes an in-process fake (tests/support/fake_control_channel.h).
///
/// One thread at a time, except abort(), which any thread may call. Every call is bounded: by the deadline the
/// implementation was made with, and by abort(). Errors: ncclRemoteError naming the ranks that are missing.
class ControlChannel {
 public:
  virtual ~ControlChannel() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Collective. `blocks` holds size() blocks of equal size; block rank() is this rank's contribution and all others
  /// are filled. blocks.size() must be a multiple of size() and equal on all ranks.
  virtual Status allGather(std::span<std::byte> blocks) = 0;
  /// Collective: returns after every rank has entered.
  virtual Status barrier() = 0;
  /// Collective: `data` of `root` reaches everybody. Same size on all ranks.
  virtual Status broadcast(int root, std::span<std::byte> data) = 0;
  /// Sends a message that the peer receives with the same tag; does not wait for the receiver. Sending to oneself is
  /// allowed. Messages of one (sender, tag) arrive in order.
  virtual Status send(int peer, int tag, std::span<const std::byte> message) = 0;
  /// Receives exactly message.size() bytes; a message of another size is an ncclInternalError.
  virtual Status recv(int peer, int tag, std::span<std::byte> message) = 0;
  /// Whether recv() would return at once: a message is there, or an error (abort, a failure, the peer has left). Never
  /// waits. For whoever waits for several peers, or for one that may send when it likes.
  virtual bool arrived(int peer, int tag) = 0;
  /// How long recv() waits.
  virtual milliseconds timeout() const = 0;
  /// Makes every present and future call on this rank return `why`. Idempotent. Any thread.
  virtual void abort(Status why) = 0;
};

/// All-gathers one trivially copyable value per rank into `values` (size() entries; entry rank() is ours).
template <class T>
Status allGatherValues(ControlChannel& channel, std::span<T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  return channel.allGather(std::as_writable_bytes(values));
}

}  // namespace tutti
