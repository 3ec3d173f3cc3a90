// The receiving end of a connection of the built-in network.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "transport/net/tcp/connection.h"
#include "transport/net/tcp/epoll_set.h"

namespace tutti::net::tcp {

/// When a socket is asked. Asking is a call of the system, and most sockets of a communicator carry nothing at a
/// time: the pause between two calls is an eighth of the time without progress, so nothing is more than that late.
class SocketInterest {
 public:
  bool due(SteadyClock::time_point now) {
    if (now - askedAt_ < std::clamp((now - movedAt_) / 8, kShortestPause, kLongestPause)) return false;
    askedAt_ = now;
    return true;
  }
  void moved(SteadyClock::time_point now) { movedAt_ = askedAt_ = now; }
  /// Whether the pauses have become as long as they get: it may be told instead of asking.
  bool idle(SteadyClock::time_point now) const { return now - movedAt_ >= 8 * kLongestPause; }

 private:
  /// A kernel that got what it waits for goes on sooner than that.
  static constexpr SteadyClock::duration kShortestPause = std::chrono::microseconds(1);
  static constexpr SteadyClock::duration kLongestPause = std::chrono::microseconds(4);
  SteadyClock::time_point askedAt_;
  SteadyClock::time_point movedAt_;
};

class SocketReceiver final : public SocketConnection {
 public:
  explicit SocketReceiver(SocketLink link);
  ~SocketReceiver() override;

  /// Lets `arrivals` say when something has come after a while without anything. At most once.
  void heed(std::shared_ptr<EpollSet> arrivals);

  /// Posts a receive; it is done at once if the message has come with an earlier one. Null: all requests are taken.
  /// When the peer has closed its end in order, what is posted beyond its last message is never done, and no error.
  /// Errors: those of the connection; ncclInvalidUsage (a message is longer than what was posted for it) from here or
  /// test.
  Result<SocketRequest*> irecv(const plugin::NetBuffer& message);

 private:
  Status moveControl() override;
  bool hasBegunOne() const override { return opened_ || begin_ != end_; }
  /// Whether the socket is to be asked now.
  bool due(SteadyClock::time_point now);
  IoOutcome fill(bool& all);
  IoOutcome fillWhole(SocketRequest& request, bool& all);
  Status takeHeader();
  Status consume();
  Status open(SocketRequest& request, const SocketHeader& header);
  /// Bytes of the message that come behind its header, on the same socket.
  std::size_t behindHeader(const SocketHeader& header) const;
  void settleGuess(SocketRequest& request);

  /// Read ahead: short messages come several at a time, and a header together with what is behind it.
  std::vector<std::byte> staging_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool opened_ = false;      ///< the header of the current request is known
  bool ended_ = false;       ///< the peer has said goodbye
  std::size_t skip_ = 0;     ///< padding to come before the next header
  std::size_t guess_ = 0;    ///< content of the last message where that was long: most likely the next is as long
  std::size_t guessed_ = 0;  ///< bytes that were read to where the content belongs before its header was looked at
  SocketInterest interest_;
  std::shared_ptr<EpollSet> arrivals_;  ///< may be null
  std::atomic<bool> came_{false};       ///< set by them: there may be something on the socket
};

}  // namespace tutti::net::tcp
