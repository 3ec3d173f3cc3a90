#include "transport/shm/fd_wire.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/log.h"

namespace tutti::shm {

Result<Token> randomToken() {
  Token token{};
  ssize_t got = 0;
  do {
    got = ::getrandom(token.data(), token.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(token.size())) return token;
  return fail(ncclSystemError, "getrandom of {} bytes failed: {}", token.size(), errnoText(errno));
}

SocketName socketName(const Token& server) {
  std::string text = "tutti-shm-";
  for (const std::byte b : server) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  SocketName name;
  name.address.sun_family = AF_UNIX;
  // The zero in front makes it abstract.
  std::memcpy(name.address.sun_path + 1, text.data(), text.size());
  name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return name;
}

bool peerIsOurUser(int fd) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

}  // namespace tutti::shm
