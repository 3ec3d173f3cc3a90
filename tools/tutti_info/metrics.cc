#include "metrics.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>

#include "ask.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/socket/local_service.h"

namespace tutti::tool {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{5000};
/// A scraper that sends nothing, or does not read, keeps others out for that long at most.
constexpr milliseconds kClientPatience{2000};
constexpr std::size_t kLongestRequest = 8192;

struct Collected {
  std::vector<std::string> texts;
  std::vector<std::string> failures;
};

/// Of processes that nobody named those are left out that do not answer: they end, or are another user's.
Collected collect(const std::vector<int>& pids) {
  Collected collected;
  const bool named = !pids.empty();
  for (const int pid : named ? pids : processesThatAnswer(kMetricsTopic)) {
    Answer answer = askProcess(kMetricsTopic, pid, kPatience);
    if (answer.ok) {
      collected.texts.push_back(std::move(answer.text));
    } else if (named) {
      collected.failures.push_back(std::move(answer.text));
    }
  }
  return collected;
}

bool complain(const std::vector<std::string>& failures) {
  for (const std::string& failure : failures) std::fprintf(stderr, "tutti-info: %s\n", failure.c_str());
  return !failures.empty();
}

/// Reads the head of a request; what it asks for, or "" where nothing comes that is one.
std::string requestOf(int client) {
  const Deadline deadline = Deadline::in(kClientPatience);
  std::string request;
  std::array<char, 1024> piece{};
  while (!deadline.expired() && request.size() < kLongestRequest) {
    pollfd ready{client, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(deadline.remaining().count())) <= 0) continue;
    const ssize_t got = ::recv(client, piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return "";
    request.append(piece.data(), static_cast<std::size_t>(got));
    if (request.find("\r\n\r\n") != std::string::npos) return request.substr(0, request.find("\r\n"));
  }
  return "";
}

void sendAll(int client, std::string_view text) {
  const Deadline deadline = Deadline::in(kClientPatience);
  while (!text.empty() && !deadline.expired()) {
    pollfd ready{client, POLLOUT, 0};
    if (::poll(&ready, 1, static_cast<int>(deadline.remaining().count())) <= 0) continue;
    const ssize_t sent = ::send(client, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void answer(int client, const std::vector<int>& pids) {
  const std::string request = requestOf(client);
  if (request.empty()) return;
  const bool known = request.starts_with("GET /metrics ") || request.starts_with("GET / ");
  const std::string body = known ? joinMetrics(collect(pids).texts) : "tutti-info serves /metrics\n";
  sendAll(client, fmt::format("HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                              "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
                              known ? "200 OK" : "404 Not Found", body.size(), body));
}

/// Nobody beyond this host is answered.
int serve(const MetricsOptions& options) {
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<std::uint16_t>(options.port));
  const int on = 1;
  socklen_t size = sizeof(at);
  if (!listener.valid() || ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0 ||
      ::listen(listener.get(), 16) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    std::fprintf(stderr, "tutti-info: port %d of 127.0.0.1 cannot be served: %s\n", options.port,
                 errnoText(errno).c_str());
    return 1;
  }
  std::fprintf(stderr, "tutti-info: serving http://127.0.0.1:%d/metrics\n", ntohs(at.sin_port));
  while (true) {
    const Fd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client.valid()) {
      answer(client.get(), options.pids);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      // Descriptors or memory may come back.
      std::this_thread::sleep_for(milliseconds(100));
    }
  }
}

}  // namespace

int printMetrics(const MetricsOptions& options) {
  if (options.port >= 0) return serve(options);
  const Collected collected = collect(options.pids);
  const std::string text = joinMetrics(collected.texts);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return complain(collected.failures) ? 1 : 0;
}

int showTop(const TopOptions& options) {
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  std::vector<Sample> before;
  SteadyClock::time_point then{};
  for (int round = 0; options.rounds == 0 || round <= options.rounds; ++round) {
    if (round > 0) std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
    const Collected collected = collect(options.pids);
    if (complain(collected.failures) && collected.texts.empty()) return 1;
    const SteadyClock::time_point now = SteadyClock::now();
    std::vector<Sample> samples = parseSamples(joinMetrics(collected.texts));
    if (round > 0) {
      if (terminal) std::fputs("\x1b[H\x1b[2J", stdout);
      std::fputs(topTable(before, samples, std::chrono::duration<double>(now - then).count()).c_str(), stdout);
      if (samples.empty()) std::fputs("no process of this user has a communicator of tutti\n", stdout);
      std::fflush(stdout);
    }
    before = std::move(samples);
    then = now;
  }
  return 0;
}

}  // namespace tutti::tool
