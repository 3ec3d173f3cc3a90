#include "base/socket/local_service.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace tutti {

namespace {

/// Any user of the host may connect: those of others are not to keep out who may ask.
constexpr int kBacklog = 1024;

/// The user at the other end, or none.
bool userOf(int socket, uid_t& user) {
  ucred who{};
  socklen_t size = sizeof(who);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return false;
  user = who.uid;
  return true;
}

bool mayAsk(int client) {
  uid_t user = 0;
  return userOf(client, user) && (user == ::geteuid() || user == 0);
}

}  // namespace

bool isOwnPeer(int socket) {
  uid_t user = 0;
  return userOf(socket, user) && (user == ::geteuid() || ::geteuid() == 0);
}

LocalAddress localAddress(std::string_view topic, pid_t pid) {
  LocalAddress at;
  at.address.sun_family = AF_UNIX;
  std::string name = "tutti-";
  name += topic;
  name += '-';
  name += std::to_string(pid);
  std::memcpy(at.address.sun_path + 1, name.data(), name.size());
  at.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return at;
}

Status LocalService::open(std::string_view topic) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const LocalAddress at = localAddress(topic, ::getpid());
  if (!socket.valid() || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at.address), at.size) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return Status(ncclSystemError);
  }
  listener_ = std::move(socket);
  return {};
}

void LocalService::close() {
  client_ = Fd();
  listener_ = Fd();
}

bool LocalService::asked(SteadyClock::time_point now) {
  for (int i = 0; i < kBacklog && listener_.valid() && !client_.valid(); ++i) {
    Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client.valid()) return false;
    if (!mayAsk(client.get())) continue;
    client_ = std::move(client);
    since_ = now;
    answered_ = false;
  }
  return client_.valid() && !answered_;
}

void LocalService::give(std::string text) {
  text_ = std::move(text);
  answered_ = true;
}

void LocalService::send(SteadyClock::time_point now) {
  if (!client_.valid() || !answered_) return;
  while (!text_.empty()) {
    const ssize_t sent = ::send(client_.get(), text_.data(), text_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent <= 0) {
      text_.clear();
      break;
    }
    text_.erase(0, static_cast<std::size_t>(sent));
  }
  if (text_.empty() || now - since_ >= patience_) client_ = Fd();
}

}  // namespace tutti
