#include "transport/common/fd_wire.h"

#include <sys/random.h>

#include <cerrno>

#include "base/log.h"

namespace tutti::transport {

Result<Token> randomToken() {
  Token token{};
  ssize_t got = 0;
  do {
    got = ::getrandom(token.data(), token.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(token.size())) return token;
  return fail(ncclSystemError, "getrandom of {} bytes failed: {}", token.size(), errnoText(errno));
}

}  // namespace tutti::transport
