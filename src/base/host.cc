#include "base/host.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <string>

#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"

namespace tutti {

namespace {

std::string fullHostName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

}  // namespace

Result<std::string> bootId(const char* path) {
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 64> text{};
  const ssize_t got = file.valid() ? ::read(file.get(), text.data(), text.size()) : -1;
  if (got < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
    const int error = errno;
    return fail(ncclSystemError,
                "Cannot read {}, by which ranks of one host ({}) know each other: {}. Raise the limits of this process "
                "(ulimit -n, memory), or set NCCL_HOSTID",
                path, hostName(), errnoText(error));
  }
  const std::string_view read(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  return std::string(read.substr(0, read.find('\n')));
}

std::string shortHostName(std::string_view fullName) {
  std::string name(fullName.substr(0, fullName.find('.')));
  for (char& c : name) {
    if (c == '%' || c == '/') c = '-';
  }
  return name;
}

std::string hostName() {
  return shortHostName(fullHostName());
}

Result<HostIdentity> hostIdentity(std::string_view hostId) {
  if (!hostId.empty()) return HostIdentity{hashText(hostId), false};
  static std::mutex mutex;
  static std::string known;
  const std::lock_guard lock(mutex);
  if (known.empty()) {
    ASSIGN(known, bootId());
  }
  return HostIdentity{hashText(known, hashText(fullHostName())), known.empty()};
}

std::uint64_t processHash() {
  // Containers may share a host name, a boot id and a pid: the inode of the pid namespace tells them apart.
  struct stat space {};
  const std::uint64_t inode = ::stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0;
  return hashText(std::to_string(::getpid()) + "@" + std::to_string(inode));
}

std::uint64_t networkNamespace() {
  struct stat space {};
  return ::stat("/proc/self/ns/net", &space) == 0 ? space.st_ino : 0;
}

}  // namespace tutti
