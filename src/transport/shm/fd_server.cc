#include "transport/shm/fd_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace tutti::shm {
namespace {

constexpr int kBacklog = 256;
/// How long a visitor may be silent.
constexpr std::chrono::seconds kPatience{5};
/// How long nobody is let in after the descriptors ran out.
constexpr int kCrowdedMs = 20;

constexpr const char* kRemedy =
    "The descriptor limit may be reached (ulimit -n); NCCL_SHM_DISABLE=1 does without shared memory";

/// One message of one byte, with `fd` unless it is negative.
ssize_t sendReply(int line, FdReply reply, int fd) {
  iovec content{&reply, sizeof(reply)};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))]{};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(line, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

}  // namespace

FdServer::~FdServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake();
  }
  thread_.join();
}

Status FdServer::open() {
  thread_.join();
  if (!wake_.valid()) wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) return fail(ncclSystemError, "eventfd failed: {}. {}", errnoText(errno), kRemedy);
  ASSIGN(name_, randomToken());
  Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return fail(ncclSystemError, "A local socket failed: {}. {}", errnoText(errno), kRemedy);
  const SocketName name = socketName(name_);
  if (::bind(listener.get(), name.generic(), name.length) != 0 || ::listen(listener.get(), kBacklog) != 0) {
    return fail(ncclSystemError, "Listening at a local socket failed: {}. {}", errnoText(errno), kRemedy);
  }
  listener_ = std::move(listener);
  ASSIGN(thread_, Thread::start("tutti-shm", [this] { run(); }));
  running_ = true;
  return {};
}

Result<Ticket> FdServer::offer(Fd fd) {
  ASSIGN(const Token item, randomToken());
  const std::lock_guard lock(mutex_);
  if (!running_) TRY(open());
  offers_.emplace(item, std::move(fd));
  return Ticket{name_, item};
}

void FdServer::withdraw(const Ticket& ticket) {
  const std::lock_guard lock(mutex_);
  if (offers_.erase(ticket.item) != 0 && offers_.empty()) wake();
}

std::size_t FdServer::pending() const {
  const std::lock_guard lock(mutex_);
  return offers_.size();
}

bool FdServer::listening() const {
  const std::lock_guard lock(mutex_);
  return running_;
}

void FdServer::wake() const {
  const std::uint64_t one = 1;
  if (wake_.valid()) [[maybe_unused]]
    const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

bool FdServer::leave() {
  const std::lock_guard lock(mutex_);
  if (!stopping_ && !offers_.empty()) return false;
  listener_.reset();
  running_ = false;
  return true;
}

void FdServer::run() {
  std::vector<Visitor> visitors;
  std::vector<pollfd> polled;
  while (!leave()) {
    polled.assign({{wake_.get(), POLLIN, 0}, {crowded_ ? -1 : listener_.get(), POLLIN, 0}});
    int timeout = crowded_ ? kCrowdedMs : -1;
    for (const Visitor& visitor : visitors) {
      polled.push_back({visitor.line.get(), POLLIN, 0});
      const auto left = static_cast<int>(visitor.until.remaining().count());
      timeout = timeout < 0 ? left : std::min(timeout, left);
    }
    // Without visitors it sleeps until somebody comes, everything is withdrawn, or the end: each of them wakes it.
    ::poll(polled.data(), polled.size(), timeout);
    crowded_ = false;
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t drained = ::read(wake_.get(), &count, sizeof(count));
    std::erase_if(visitors, [this](const Visitor& v) { return serve(v.line.get()) || v.until.expired(); });
    acceptAll(visitors);
  }
}

void FdServer::acceptAll(std::vector<Visitor>& visitors) {
  for (;;) {
    Fd line(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!line.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // Out of descriptors or memory, the listener would stay readable and the thread would spin.
      crowded_ = errno != EAGAIN;
      return;
    }
    if (!peerIsOurUser(line.get()) || serve(line.get())) continue;
    if (visitors.size() >= kMostSilent) visitors.erase(visitors.begin());
    visitors.push_back({std::move(line), Deadline::in(kPatience)});
  }
}

bool FdServer::serve(int line) {
  FdRequest request;
  const ssize_t got = ::recv(line, &request, sizeof(request), MSG_DONTWAIT | MSG_TRUNC);
  if (got < 0) return errno != EAGAIN && errno != EINTR;
  if (got != sizeof(request) || request.magic != FdRequest::kMagic) return true;
  if (!grant(line, request.item)) sendReply(line, FdReply::Refused, -1);
  return true;
}

/// Whether there was such an item. One that cannot be sent (descriptors under way are limited, too) stays: the visitor
/// sees the line closed without an answer, and comes again.
bool FdServer::grant(int line, const Token& item) {
  const std::lock_guard lock(mutex_);
  const auto wanted = offers_.find(item);
  if (wanted == offers_.end()) return false;
  if (sendReply(line, FdReply::Granted, wanted->second.get()) > 0) offers_.erase(wanted);
  return true;
}

}  // namespace tutti::shm
