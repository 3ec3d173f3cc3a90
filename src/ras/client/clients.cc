#include "ras/client/clients.h"

#include <sys/resource.h>

#include <algorithm>

namespace tutti::ras {

namespace {

/// Whoever is not let in waits in the kernel's queue.
constexpr std::size_t kMost = 512;
constexpr milliseconds kStarved{200};

std::size_t mostClients() {
  rlimit limit{};
  const std::size_t files = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
  return std::clamp<std::size_t>(files / 8, 4, kMost);
}

}  // namespace

Clients::Clients(bootstrap::Poller& poller, Listener listener, milliseconds patience)
    : poller_(poller), listener_(std::move(listener)), patience_(patience), most_(mostClients()) {
  openDoor(true);
}

void Clients::openDoor(bool open) {
  if (!listener_.valid() || open == open_) return;
  open_ = open;
  if (open) {
    open_ = poller_.add(listener_.fd(), kFirstName);
  } else {
    poller_.remove(listener_.fd());
  }
}

void Clients::welcome() {
  while (sessions_.size() < most_) {
    Socket socket;
    const bootstrap::AcceptKind kind = bootstrap::acceptNow(listener_.fd(), &socket);
    if (kind == bootstrap::AcceptKind::Nothing) return;
    if (kind == bootstrap::AcceptKind::NoDescriptors) {
      openDoor(false);
      reopen_ = Deadline::in(kStarved);
      return;
    }
    auto session = std::make_unique<Session>(std::move(socket), patience_);
    const std::uint64_t name = ++last_;
    if (poller_.add(session->fd(), name)) sessions_[name] = {std::move(session)};
  }
  openDoor(false);
  reopen_ = Deadline::in(milliseconds(0));
}

void Clients::onEvent(const bootstrap::Poller::Event& event) {
  if (event.name == kFirstName) return welcome();
  const auto found = sessions_.find(event.name);
  if (found == sessions_.end()) return;
  Session& session = *found->second.session;
  if (event.writable) session.flush();
  if (session.ended()) return;
  if (event.readable && session.wantsRead()) {
    session.receive();
  } else if (event.readable && !found->second.reads) {
    session.close();  // nothing was to be read: it is gone
  }
}

void Clients::settle() {
  std::erase_if(sessions_, [](const auto& known) { return known.second.session->ended(); });
  for (auto& [name, known] : sessions_) {
    const bool reads = known.session->wantsRead();
    const bool writes = known.session->wantsWrite();
    if (reads == known.reads && writes == known.writes) continue;
    known.reads = reads;
    known.writes = writes;
    poller_.setInterest(known.session->fd(), name, reads, writes);
  }
}

void Clients::tend() {
  for (auto& [name, known] : sessions_) known.session->tend();
  settle();
  if (!open_ && !reopen_.isNever() && reopen_.expired() && sessions_.size() < most_) {
    reopen_ = Deadline::never();
    openDoor(true);
  }
}

void Clients::happened(const Event& event) {
  for (auto& [name, known] : sessions_) known.session->happened(event);
}

std::vector<Session*> Clients::waiting() {
  std::vector<Session*> list;
  for (auto& [name, known] : sessions_) {
    if (!known.session->ended() && known.session->request()) list.push_back(known.session.get());
  }
  return list;
}

void Clients::close() {
  sessions_.clear();
  openDoor(false);
  listener_.close();
}

}  // namespace tutti::ras
