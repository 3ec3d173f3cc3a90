#include "comm/ending/stall_service.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/socket/stall_socket.h"
#include "comm/diagnosis/stalls.h"
#include "comm/state/communicator.h"

namespace tutti::comm {

namespace {

/// How long communicators may take to answer, and the client to take the text.
constexpr std::chrono::seconds kPatience{6};
/// Any user of the host may connect: those of others are not to keep out who may ask.
constexpr int kBacklog = 1024;

bool mayAsk(int client) {
  ucred who{};
  socklen_t size = sizeof(who);
  if (::getsockopt(client, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return false;
  return who.uid == ::geteuid() || who.uid == 0;
}

std::string linesOf(ncclComm& comm) {
  std::string text = fmt::format("communicator {:#x}\n", comm.identity.commId);
  if (comm.abort.raised())
    return text + fmt::format("  {}: it has failed: {}\n", describeComm(comm), comm.abort.text());
  if (!comm.parts.stalls) return text + fmt::format("  {}: a lone rank waits for nobody\n", describeComm(comm));
  const std::vector<std::string> lines = comm.parts.stalls->takeAnswer();
  if (lines.empty()) return text + fmt::format("  {}: no answer in time\n", describeComm(comm));
  for (const std::string& line : lines) text += fmt::format("  {}\n", line);
  return text;
}

}  // namespace

void StallService::open() {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const StallAddress at = stallAddress(::getpid());
  if (!socket.valid() || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at.address), at.size) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    info(kInit, "tutti-info cannot ask this process about stalls: no local socket ({})", errnoText(errno));
    return;
  }
  listener_ = std::move(socket);
}

void StallService::close() {
  client_ = Fd();
  listener_ = Fd();
}

void StallService::welcome(std::span<ncclComm* const> comms, SteadyClock::time_point now) {
  for (int i = 0; i < kBacklog && !client_.valid(); ++i) {
    Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client.valid()) return;
    if (mayAsk(client.get())) client_ = std::move(client);
  }
  if (!client_.valid()) return;
  since_ = now;
  composed_ = false;
  for (ncclComm* comm : comms) {
    if (comm->parts.stalls && !comm->abort.raised()) comm->parts.stalls->inquire();
  }
}

void StallService::serve(std::span<ncclComm* const> comms, SteadyClock::time_point now,
                         const std::function<std::vector<std::string>()>& others) {
  if (!listener_.valid()) return;
  if (!client_.valid()) return welcome(comms, now);
  const bool late = now - since_ >= kPatience;
  if (!composed_) {
    const bool pending = std::any_of(comms.begin(), comms.end(), [](const ncclComm* comm) {
      return comm->parts.stalls && !comm->abort.raised() && comm->parts.stalls->pending();
    });
    if (pending && !late) return;
    text_.clear();
    for (ncclComm* comm : comms) text_ += linesOf(*comm);
    for (const std::string& line : others()) text_ += line + "\n";
    composed_ = true;
  }
  send();
  if (text_.empty() || now - since_ >= 2 * kPatience) client_ = Fd();
}

void StallService::send() {
  while (!text_.empty()) {
    const ssize_t sent = ::send(client_.get(), text_.data(), text_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent <= 0) return text_.clear();
    text_.erase(0, static_cast<std::size_t>(sent));
  }
}

}  // namespace tutti::comm
