#include "transport/net/tcp/epoll_set.h"

#include <sys/epoll.h>

#include <array>
#include <chrono>
#include <utility>

namespace tutti::net::tcp {

std::shared_ptr<EpollSet> EpollSet::create() {
  Fd set(::epoll_create1(EPOLL_CLOEXEC));
  return set.valid() ? std::shared_ptr<EpollSet>(new EpollSet(std::move(set))) : nullptr;
}

bool EpollSet::add(int socket, std::atomic<bool>& came) {
  const std::lock_guard lock(mutex_);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &came;
  return ::epoll_ctl(set_.get(), EPOLL_CTL_ADD, socket, &event) == 0;
}

void EpollSet::remove(int socket) {
  const std::lock_guard lock(mutex_);
  epoll_event ignored{};
  ::epoll_ctl(set_.get(), EPOLL_CTL_DEL, socket, &ignored);
}

void EpollSet::ask(SteadyClock::time_point now) {
  constexpr auto kPause = std::chrono::microseconds(4);
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || now - askedAt_ < kPause) return;
  askedAt_ = now;
  // What does not fit is told in the next turn.
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(set_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    static_cast<std::atomic<bool>*>(events[static_cast<std::size_t>(i)].data.ptr)
        ->store(true, std::memory_order_release);
  }
}

}  // namespace tutti::net::tcp
