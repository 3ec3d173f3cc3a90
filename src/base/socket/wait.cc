// The one place where sockets wait.
#include <poll.h>

#include <array>
#include <cerrno>

#include "base/socket/socket.h"

namespace tutti {

namespace {

/// How long an Abort may go unseen.
constexpr milliseconds kAbortSlice{100};

IoOutcome ended(IoOutcome::Kind kind, int error = 0) {
  return {.kind = kind, .bytes = 0, .error = error};
}

/// One poll: nothing where neither the descriptor nor the wake-up nor an error came.
std::optional<IoOutcome> pollOnce(int fd, short events, const Wait& wait) {
  const milliseconds cap = wait.abort != nullptr ? kAbortSlice : milliseconds(std::chrono::hours(1));
  std::array<pollfd, 2> set{{{fd, events, 0}, {wait.wakeFd, POLLIN, 0}}};
  const nfds_t count = wait.wakeFd >= 0 ? 2 : 1;
  const int ready = ::poll(set.data(), count, static_cast<int>(wait.deadline.remaining(cap).count()));
  if (ready < 0 && errno != EINTR) return ended(IoOutcome::Kind::Failed, errno);
  if (ready <= 0) return std::nullopt;
  if ((set[0].revents & POLLNVAL) != 0) return ended(IoOutcome::Kind::Failed, EBADF);
  if (set[1].revents != 0) return ended(IoOutcome::Kind::Aborted);
  if (set[0].revents != 0) return ended(IoOutcome::Kind::Done);
  return std::nullopt;
}

}  // namespace

IoOutcome pollFd(int fd, short events, const Wait& wait) {
  while (true) {
    if (wait.abort != nullptr && wait.abort->raised()) return ended(IoOutcome::Kind::Aborted);
    // Read before polling, so that a descriptor that is ready counts even when the deadline has passed.
    const bool late = wait.deadline.expired();
    if (const auto outcome = pollOnce(fd, events, wait)) return *outcome;
    if (late) return ended(IoOutcome::Kind::TimedOut);
  }
}

}  // namespace tutti
