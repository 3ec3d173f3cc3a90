#include "base/host.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include "base/hash.h"

namespace tutti {

namespace {

std::string fullHostName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

std::string bootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace

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

std::uint64_t hostHash(std::string_view hostId) {
  if (!hostId.empty()) return hashText(hostId);
  return hashText(bootId(), hashText(fullHostName()));
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
