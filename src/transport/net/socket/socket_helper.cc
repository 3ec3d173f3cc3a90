#include "transport/net/socket/socket_helper.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>

#include "base/log.h"

namespace tutti {

Result<std::unique_ptr<SocketHelper>> SocketHelper::start(std::vector<SocketStream*> streams, const std::string& name) {
  std::unique_ptr<SocketHelper> helper(new SocketHelper(std::move(streams)));
  helper->wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!helper->wake_.valid()) {
    return fail(ncclSystemError, "NET/Socket : No eventfd for a helper thread: {}. Raise ulimit -n", errnoText(errno));
  }
  ASSIGN(helper->thread_, Thread::start(name, [self = helper.get()] { self->run(); }));
  return helper;
}

SocketHelper::~SocketHelper() {
  stop_.store(true);
  if (wake_.valid()) static_cast<void>(::eventfd_write(wake_.get(), 1));
  thread_.join();
}

void SocketHelper::notify() {
  // The load pairs with sleep(): either it sees the piece, or we see that it sleeps.
  if (asleep_.load() && asleep_.exchange(false)) static_cast<void>(::eventfd_write(wake_.get(), 1));
}

std::optional<IoOutcome> SocketHelper::failure() const {
  if (!failed_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool SocketHelper::advanceAll() {
  for (SocketStream* stream : streams_) {
    const IoOutcome outcome = stream->advance();
    if (outcome.done() || outcome.kind == IoOutcome::Kind::WouldBlock) continue;
    const std::lock_guard lock(mutex_);
    failure_ = outcome;
    failed_.store(true, std::memory_order_release);
    return false;
  }
  return true;
}

/// Bounded by the owner, who wakes us with `stop_` set, and by the connection's end.
void SocketHelper::sleep() {
  asleep_.store(true);
  std::vector<pollfd> set{{wake_.get(), POLLIN, 0}};
  for (const SocketStream* stream : streams_) {
    // What is pushed from now on finds us asleep; what was pushed before is seen here.
    if (!stream->idle()) set.push_back({stream->fd(), stream->waitsFor(), 0});
  }
  if (!stop_.load()) static_cast<void>(::poll(set.data(), set.size(), -1));
  asleep_.store(false);
  eventfd_t drained = 0;
  if (set[0].revents != 0) static_cast<void>(::eventfd_read(wake_.get(), &drained));
}

void SocketHelper::run() {
  while (!stop_.load()) {
    if (!advanceAll()) return;
    sleep();
  }
}

}  // namespace tutti
