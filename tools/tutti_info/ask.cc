#include "ask.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/socket/local_service.h"

namespace tutti::tool {

namespace {

Answer refusal(int pid, int error) {
  if (::kill(pid, 0) != 0 && errno == ESRCH) return {false, fmt::format("there is no process {}", pid)};
  if (error == ECONNREFUSED) {
    return {false, fmt::format("process {} has no communicator of tutti at the moment (or lives in another network "
                               "namespace: run this in its container, with the number that the process has there)",
                               pid)};
  }
  return {false, fmt::format("process {} cannot be asked: {}", pid, errnoText(error))};
}

Answer readAll(int socket, int pid, std::chrono::milliseconds patience) {
  const Deadline deadline = Deadline::in(patience);
  std::array<char, 4096> piece{};
  Answer answer;
  while (!deadline.expired()) {
    pollfd ready{socket, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(deadline.remaining().count())) <= 0) continue;
    const ssize_t got = ::recv(socket, piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      answer.ok = got == 0 && !answer.text.empty();
      if (answer.ok) return answer;
      return {false,
              fmt::format("process {} said nothing: its last communicator has ended, or it runs as another user", pid)};
    }
    answer.text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return {false, fmt::format("process {} did not answer within {} s: is it stopped?", pid,
                             std::chrono::duration_cast<std::chrono::seconds>(patience).count())};
}

}  // namespace

Answer askProcess(std::string_view topic, int pid, std::chrono::milliseconds patience) {
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return refusal(pid, errno);
  const LocalAddress at = localAddress(topic, pid);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&at.address), at.size) != 0) return refusal(pid, errno);
  if (!isOwnPeer(socket.get())) return refusal(pid, EPERM);
  return readAll(socket.get(), pid, patience);
}

std::vector<int> processesThatAnswer(std::string_view topic) {
  std::vector<int> pids;
  std::ifstream sockets("/proc/net/unix");
  const std::string prefix = fmt::format("@tutti-{}-", topic);
  for (std::string line; std::getline(sockets, line);) {
    const std::size_t at = line.find(prefix);
    if (at == std::string::npos) continue;
    int pid = 0;
    const char* const begin = line.data() + at + prefix.size();
    if (std::from_chars(begin, line.data() + line.size(), pid).ec == std::errc()) pids.push_back(pid);
  }
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

}  // namespace tutti::tool
