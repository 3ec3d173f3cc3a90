#include "transport/common/fd_server.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/threads/shortage.h"

namespace tutti::transport {
namespace {

PacketIo sendReply(int line, FdReply reply, int fd = -1) {
  return sendPacket(line, packetOf(reply), fd);
}

}  // namespace

FdServer::~FdServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    waker_.wake();
  }
  thread_.join();
}

Status FdServer::open() {
  thread_.join();
  if (!waker_.valid()) waker_ = Waker::create();
  const std::string remedy = fmt::format("The descriptor limit may be reached (ulimit -n); {}", purpose_.without);
  if (!waker_.valid()) {
    return fail(ncclSystemError, "{} : eventfd failed: {}. {}", purpose_.transport, errnoText(errno), remedy);
  }
  ASSIGN(name_, randomToken());
  TRY(listener_.open(socketName(name_), purpose_.transport, remedy));
  ASSIGN(thread_, Thread::start(purpose_.thread, [this] { throughShortages([this] { run(); }); }));
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
  if (offers_.erase(ticket.item) != 0 && offers_.empty()) waker_.wake();
}

std::size_t FdServer::pending() const {
  const std::lock_guard lock(mutex_);
  return offers_.size();
}

bool FdServer::listening() const {
  const std::lock_guard lock(mutex_);
  return running_;
}

bool FdServer::leave() {
  const std::lock_guard lock(mutex_);
  if (!stopping_ && !offers_.empty()) return false;
  listener_.close();
  running_ = false;
  return true;
}

void FdServer::run() {
  std::vector<Visitor> visitors;
  std::vector<pollfd> polled;
  while (!leave()) {
    polled.assign({{waker_.fd(), POLLIN, 0}, {listener_.polled(), POLLIN, 0}});
    int timeout = listener_.patience();
    for (const Visitor& visitor : visitors) {
      polled.push_back({visitor.line.get(), POLLIN, 0});
      const auto left = static_cast<int>(visitor.until.remaining().count());
      timeout = timeout < 0 ? left : std::min(timeout, left);
    }
    // Without visitors it sleeps until somebody comes, everything is withdrawn, or the end: each of them wakes it.
    ::poll(polled.data(), polled.size(), timeout);
    waker_.drain();
    std::erase_if(visitors,
                  [this](const Visitor& v) { return serve(v.line.get()) != Visit::Silent || v.until.expired(); });
    acceptAll(visitors);
  }
}

void FdServer::acceptAll(std::vector<Visitor>& visitors) {
  for (Fd line = listener_.accept(); line.valid(); line = listener_.accept()) {
    const Visit visit = serve(line.get());
    if (visit == Visit::Served) continue;
    UnprovenPlaces::Place place;
    if (visit == Visit::Silent) place = places_.takeLocal();
    if (place.taken()) {
      visitors.push_back({std::move(line), std::move(place), Deadline::in(kUnprovenTime)});
    } else {
      listener_.turnedAway();
    }
  }
}

FdServer::Visit FdServer::serve(int line) {
  FdRequest request;
  const ReceivedPacket packet = receivePacket(line, std::as_writable_bytes(std::span(&request, 1)));
  if (packet.state == PacketIo::Again) return Visit::Silent;
  if (packet.state == PacketIo::Gone) return Visit::Stranger;
  if (packet.bytes != sizeof(request) || request.magic != FdRequest::kMagic) return Visit::Stranger;
  if (grant(line, request.item)) return Visit::Served;
  sendReply(line, FdReply::Refused);
  return Visit::Stranger;
}

/// Whether there was such an item. One that cannot be sent (descriptors under way are limited, too) stays: the visitor
/// sees the line closed without an answer, and comes again.
bool FdServer::grant(int line, const Token& item) {
  const std::lock_guard lock(mutex_);
  const auto wanted = offers_.find(item);
  if (wanted == offers_.end()) return false;
  const PacketIo sent = sendReply(line, FdReply::Granted, wanted->second.get());
  if (sent == PacketIo::Done) offers_.erase(wanted);
  return true;
}

}  // namespace tutti::transport
