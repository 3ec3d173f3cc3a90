// Where a process answers questions about operations that do not end.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <string>

namespace tutti {

struct StallAddress {
  sockaddr_un address{};
  socklen_t size = 0;
};

/// Of process `pid`: a name in the abstract namespace, which belongs to a network namespace and leaves no file.
inline StallAddress stallAddress(pid_t pid) {
  StallAddress at;
  at.address.sun_family = AF_UNIX;
  const std::string name = "tutti-stalls-" + std::to_string(pid);
  std::memcpy(at.address.sun_path + 1, name.data(), name.size());
  at.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return at;
}

}  // namespace tutti
