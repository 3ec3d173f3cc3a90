// Strangers at a port of the bootstrap, for measurements: a process of its own that opens many connections.
#pragma once

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/socket/address.h"
#include "bootstrap/link/handshake.h"

namespace tutti::test {

/// What they do once they are connected.
enum class Manner : std::uint8_t {
  Silent,   ///< nothing
  Garbage,  ///< say something else
  Head,     ///< say how a hello begins that they have overheard
  Replay,   ///< say all of it
  Knock,    ///< say it in their first packet
};

inline Manner mannerOf(std::string_view name) {
  if (name == "garbage") return Manner::Garbage;
  if (name == "head") return Manner::Head;
  if (name == "replay") return Manner::Replay;
  return name == "knock" ? Manner::Knock : Manner::Silent;
}

struct Siege {
  Address at;
  int perSecond = 10'000;
  int held = 1'000;
  Manner manner = Manner::Silent;
  int addresses = 1;  ///< they come from so many of 127.0.0.0/8
  bootstrap::Hello overheard;
};

/// One connection, under way. System calls only.
inline int comeTo(const Siege& siege, long number) {
  const Address& at = siege.at;
  const int fd = ::socket(at.family(), SOCK_STREAM | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (siege.addresses > 1) {
    sockaddr_in from{};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + static_cast<std::uint32_t>(number % siege.addresses));
    (void)::setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    (void)::bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from);
  }
  const auto hello = std::as_bytes(std::span(&siege.overheard, 1));
  if (siege.manner == Manner::Knock) {
    (void)::setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof on);
    (void)::sendto(fd, hello.data(), hello.size(), MSG_FASTOPEN | MSG_NOSIGNAL, at.raw(), at.length());
    return fd;
  }
  (void)::connect(fd, at.raw(), at.length());
  constexpr std::string_view kGarbage = "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n";
  if (siege.manner == Manner::Garbage) (void)::send(fd, kGarbage.data(), kGarbage.size(), MSG_NOSIGNAL);
  if (siege.manner == Manner::Head) (void)::send(fd, hello.data(), sizeof(bootstrap::HelloHead), MSG_NOSIGNAL);
  if (siege.manner == Manner::Replay) (void)::send(fd, hello.data(), hello.size(), MSG_NOSIGNAL);
  return fd;
}

/// Holds connections open, makes lost ones again, and opens and closes others. System calls only.
[[noreturn]] inline void besiege(const Siege& siege) {
  std::vector<int> kept(static_cast<std::size_t>(siege.held), -1);
  std::vector<int> passing(64, -1);
  const auto start = SteadyClock::now();
  std::size_t at64 = 0;
  for (long made = 0;; ++made) {
    if (siege.held > 0 && made % 4 == 0) {
      int& one = kept[static_cast<std::size_t>(made / 4) % kept.size()];
      char byte = 0;
      const bool lost = one < 0 || ::recv(one, &byte, 1, MSG_DONTWAIT) == 0 || errno != EAGAIN;
      if (lost) {
        if (one >= 0) ::close(one);
        one = comeTo(siege, made);
      }
    }
    int& next = passing[at64++ % passing.size()];
    if (next >= 0) ::close(next);
    next = comeTo(siege, made);
    const auto due = start + std::chrono::nanoseconds(made * 1'000'000'000L / std::max(siege.perSecond, 1));
    if (made % 32 == 0) std::this_thread::sleep_until(due);
  }
}

/// The process of strangers, as long as this lives.
class Strangers {
 public:
  explicit Strangers(const Siege& siege) : pid_(::fork()) {
    if (pid_ == 0) besiege(siege);
  }
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;
  ~Strangers() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

/// A port that nobody else gets while `socket` is open: roots listen there one after another, and in between it would
/// be anybody's.
struct Reserved {
  Fd socket;
  Address at;
};

/// Not one of those that the system gives to clients, of which there will be many.
inline Reserved reservePort() {
  for (int port = 20'000; port < 30'000; ++port) {
    const Address at = Address::loopback(AF_INET, static_cast<std::uint16_t>(port));
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(socket.get(), at.raw(), at.length()) != 0) continue;
    // Roots may share it from now on, and another process of strangers has found it taken.
    const int on = 1;
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    return {std::move(socket), at};
  }
  return {};
}

/// Of this process, in seconds.
inline double cpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Open ones of this process.
inline int descriptors() {
  int count = 0;
  DIR* const all = ::opendir("/proc/self/fd");
  while (::readdir(all) != nullptr) ++count;
  ::closedir(all);
  return count;
}

}  // namespace tutti::test
