// A thread that moves the bytes of some data sockets of one connection.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/threads/thread.h"
#include "base/threads/waker.h"
#include "transport/net/tcp/stream.h"

namespace tutti::net::tcp {

/// Sleeps while no piece waits, and while all that wait are held up by the network. Ends by itself at the first
/// failure.
class SocketHelper {
 public:
  /// Starts the thread. The streams are borrowed. Errors: ncclSystemError.
  static Result<std::unique_ptr<SocketHelper>> start(std::vector<SocketStream*> streams, const std::string& name);
  /// Ends the thread, whatever is under way.
  ~SocketHelper();

  /// A piece was pushed on one of the streams.
  void notify();
  /// How a stream failed, if one has.
  std::optional<IoOutcome> failure() const;

 private:
  explicit SocketHelper(std::vector<SocketStream*> streams) : streams_(std::move(streams)) {}
  void run();
  bool advanceAll();
  void sleep();

  std::vector<SocketStream*> streams_;
  Waker waker_;
  std::atomic<bool> asleep_{false};
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  IoOutcome failure_;
  Thread thread_;
};

}  // namespace tutti::net::tcp
