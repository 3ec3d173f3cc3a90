#include "transport/net/tcp/helper.h"

#include <poll.h>

#include <cerrno>

#include "base/log.h"
#include "base/threads/shortage.h"

namespace tutti::net::tcp {

Result<std::unique_ptr<SocketHelper>> SocketHelper::start(std::vector<SocketStream*> streams, const std::string& name) {
  std::unique_ptr<SocketHelper> helper(new SocketHelper(std::move(streams)));
  helper->waker_ = Waker::create();
  if (!helper->waker_.valid()) {
    return fail(ncclSystemError, "NET/Socket : No eventfd for a helper thread: {}. Raise ulimit -n", errnoText(errno));
  }
  ASSIGN(helper->thread_, Thread::start(name, [self = helper.get()] { throughShortages([self] { self->run(); }); }));
  return helper;
}

SocketHelper::~SocketHelper() {
  stop_.store(true);
  waker_.wake();
  thread_.join();
}

void SocketHelper::notify() {
  // The load pairs with sleep(): either it sees the piece, or we see that it sleeps.
  if (asleep_.load() && asleep_.exchange(false)) waker_.wake();
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
  std::vector<pollfd> set{{waker_.fd(), POLLIN, 0}};
  for (const SocketStream* stream : streams_) {
    // What is pushed from now on finds us asleep; what was pushed before is seen here.
    if (!stream->idle()) set.push_back({stream->fd(), stream->waitsFor(), 0});
  }
  if (!stop_.load()) static_cast<void>(::poll(set.data(), set.size(), -1));
  asleep_.store(false);
  if (set[0].revents != 0) waker_.drain();
}

void SocketHelper::run() {
  while (!stop_.load()) {
    if (!advanceAll()) return;
    sleep();
  }
}

}  // namespace tutti::net::tcp
