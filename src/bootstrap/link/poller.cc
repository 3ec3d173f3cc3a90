#include "bootstrap/link/poller.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "base/log.h"

namespace tutti::bootstrap {
namespace {

/// Who waits in vain must not take a processor for it.
constexpr milliseconds kBroken{10};

epoll_event eventOf(std::uint64_t name, bool write) {
  epoll_event event{};
  event.events = EPOLLIN | (write ? static_cast<std::uint32_t>(EPOLLOUT) : 0U);
  event.data.u64 = name;
  return event;
}

void setOption(int fd, int level, int option, int value) {
  // A kernel without the option only notices later; nothing to tell the user.
  (void)::setsockopt(fd, level, option, &value, sizeof value);
}

}  // namespace

Result<Poller> Poller::create() {
  Poller poller;
  poller.epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  poller.waker_ = Waker::create();
  if (!poller.epoll_.valid() || !poller.waker_.valid()) {
    return fail(ncclSystemError,
                "Bootstrap: cannot make an event descriptor: {}; ulimit -n sets how many a process may have",
                errnoText(errno));
  }
  if (!poller.add(poller.waker_.fd(), kWakeName)) {
    return fail(ncclSystemError, "Bootstrap: cannot watch an event descriptor: {}", errnoText(errno));
  }
  return poller;
}

bool Poller::add(int fd, std::uint64_t name, bool write) {
  epoll_event event = eventOf(name, write);
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Poller::setWrite(int fd, std::uint64_t name, bool write) {
  epoll_event event = eventOf(name, write);
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::setInterest(int fd, std::uint64_t name, bool read, bool write) {
  epoll_event event = eventOf(name, write);
  if (!read) event.events &= ~static_cast<std::uint32_t>(EPOLLIN);
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::remove(int fd) {
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

int Poller::wait(std::vector<Event>& events, milliseconds limit) {
  std::array<epoll_event, 256> ready;
  events.clear();
  const int timeout = limit.count() < 0 ? -1 : static_cast<int>(std::min<std::int64_t>(limit.count(), 3'600'000));
  const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), timeout);
  if (count < 0 && errno != EINTR) {
    const int error = errno;
    std::this_thread::sleep_for(kBroken);
    return error;
  }
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = ready[static_cast<std::size_t>(i)];
    if (event.data.u64 == kWakeName) {
      waker_.drain();
      continue;
    }
    events.push_back(
        {event.data.u64, (event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0, (event.events & EPOLLOUT) != 0});
  }
  return 0;
}

AcceptKind acceptNow(int listenFd, Socket* accepted) {
  Address peer;
  socklen_t length = sizeof peer;
  Fd fd(::accept4(listenFd, peer.raw(), &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.valid()) {
    const bool full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    return full ? AcceptKind::NoDescriptors : AcceptKind::Nothing;
  }
  *accepted = Socket(std::move(fd), peer);
  return AcceptKind::Accepted;
}

void makeNonBlocking(int fd) {
  (void)::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void setAbrupt(int fd, bool abrupt) {
  const linger how{abrupt ? 1 : 0, 0};
  (void)::setsockopt(fd, SOL_SOCKET, SO_LINGER, &how, sizeof how);
}

void raiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

void watchSilence(int fd, milliseconds silence) {
  const int seconds = std::max<int>(1, static_cast<int>(silence.count() / 1000));
  setOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  setOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, std::max(1, seconds / 2));
  setOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, seconds / 6));
  setOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  setOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(silence.count()));
}

}  // namespace tutti::bootstrap
