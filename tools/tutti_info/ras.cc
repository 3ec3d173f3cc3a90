#include "ras.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/settings/params.h"

namespace tutti {

namespace {

/// For a connection, and for the first answer on it. A process that is stopped shares the port with others of its user:
/// the next try may reach another one.
constexpr milliseconds kTry{1000};
constexpr int kTries = 6;
/// Beyond the time that the job has to collect.
constexpr milliseconds kGrace{6000};
/// Of an answer to a command; a longer line is no answer.
constexpr std::size_t kLongestLine = 4096;

int complain(const std::string& text) {
  std::fprintf(stderr, "tutti-info: %s\n", text.c_str());
  return 1;
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

struct Target {
  std::string host;
  std::string port;
};

Target targetOf(const RasQuestion& question) {
  std::string address = Params::process().ras.address;
  const std::size_t colon = address.rfind(':');
  Target target{address.substr(0, colon), colon == std::string::npos ? "" : address.substr(colon + 1)};
  if (target.host.size() > 2 && target.host.front() == '[') target.host = target.host.substr(1, target.host.size() - 2);
  if (!question.host.empty()) target.host = question.host;
  if (question.port != 0) target.port = std::to_string(question.port);
  return target;
}

/// One connection with its reader. Every wait has an end.
class Conversation {
 public:
  explicit Conversation(Fd fd) : fd_(std::move(fd)) {}

  bool say(const std::string& line) {
    return ::send(fd_.get(), line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
  }
  /// What comes next; empty at the end of it, unset where nothing comes. `deadline` may be never.
  std::optional<std::string> hear(Deadline deadline) {
    if (!pending_.empty()) return std::exchange(pending_, {});
    std::array<char, 65536> piece;
    while (!deadline.expired()) {
      pollfd ready{fd_.get(), POLLIN, 0};
      if (::poll(&ready, 1, static_cast<int>(deadline.remaining().count())) <= 0) continue;
      const ssize_t got = ::recv(fd_.get(), piece.data(), piece.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      return got > 0 ? std::string(piece.data(), static_cast<std::size_t>(got)) : std::string();
    }
    return std::nullopt;
  }
  /// One line without its end, or its beginning where it is too long; what is behind it stays. Empty where the other
  /// side has closed.
  std::optional<std::string> hearLine(Deadline deadline) {
    std::string text;
    while (text.find('\n') == std::string::npos) {
      if (text.size() > kLongestLine) return text.substr(0, kLongestLine);
      const auto more = hear(deadline);
      if (!more || more->empty()) return more;
      text += *more;
    }
    const std::size_t end = text.find('\n');
    pending_ = text.substr(end + 1);
    return text.substr(0, end);
  }

 private:
  Fd fd_;
  std::string pending_;
};

/// Invalid: errno says why.
Fd connectTo(const addrinfo& at) {
  Fd fd(::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return fd;
  if (::connect(fd.get(), at.ai_addr, at.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return Fd();
  pollfd ready{fd.get(), POLLOUT, 0};
  int error = ETIMEDOUT;
  socklen_t size = sizeof(error);
  if (::poll(&ready, 1, static_cast<int>(kTry.count())) > 0) {
    static_cast<void>(::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size));
  }
  errno = error;
  return error == 0 ? std::move(fd) : Fd();
}

std::string nameOf(const addrinfo& at) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  ::getnameinfo(at.ai_addr, at.ai_addrlen, host.data(), host.size(), port.data(), port.size(),
                NI_NUMERICHOST | NI_NUMERICSERV);
  return fmt::format("{}:{}", host.data(), port.data());
}

/// How one try has ended, where it has.
struct Greeting {
  std::unique_ptr<Conversation> conversation;
  std::string problem;
  bool silent = false;  ///< somebody listens there
};

Greeting greet(const addrinfo& at) {
  Fd fd = connectTo(at);
  if (!fd.valid()) return {nullptr, fmt::format("connecting to {}: {}", nameOf(at), errnoText(errno))};
  auto conversation = std::make_unique<Conversation>(std::move(fd));
  const bool said = conversation->say("CLIENT PROTOCOL 2\n");
  const auto answer = said ? conversation->hearLine(Deadline::in(kTry)) : std::string();
  if (!answer) return {nullptr, fmt::format("{} does not answer: is the process stopped?", nameOf(at)), true};
  if (answer->empty()) return {nullptr, fmt::format("{} has closed the connection", nameOf(at)), true};
  constexpr std::string_view kProtocol = "SERVER PROTOCOL ";
  if (!answer->starts_with(kProtocol)) {
    return {nullptr, fmt::format("unexpected response from {}: {}", nameOf(at), *answer)};
  }
  if (answer->substr(kProtocol.size()) != "2") {
    std::fprintf(stderr, "tutti-info: warning: the job speaks protocol %s, this program 2\n",
                 answer->substr(kProtocol.size()).c_str());
  }
  return {std::move(conversation), ""};
}

Greeting reach(const Target& target) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(target.host.c_str(), target.port.c_str(), &hints, &found); error != 0) {
    return {nullptr, fmt::format("{}:{}: {}", target.host, target.port, ::gai_strerror(error))};
  }
  const Addresses list(found);
  Greeting last;
  for (int i = 0; i < kTries; ++i) {
    bool silent = false;
    for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
      Greeting greeting = greet(*at);
      if (greeting.conversation) return greeting;
      silent = silent || greeting.silent;
      // Of two addresses of one name the one at which somebody listens tells more.
      if (last.problem.empty() || greeting.silent || !last.silent) last = std::move(greeting);
    }
    if (!silent) break;
  }
  return last;
}

/// Whether the job agrees.
bool order(Conversation& with, const std::string& line) {
  const auto answer = with.say(line + "\n") ? with.hearLine(Deadline::in(kTry * 5)) : std::string();
  if (answer == "OK") return true;
  if (!answer) {
    complain("connection timed out");
  } else {
    complain(answer->empty() ? "the job has closed the connection" : "unexpected response: " + *answer);
  }
  return false;
}

int printAll(Conversation& from, bool bounded, int timeout) {
  bool any = false;
  while (true) {
    const Deadline deadline = bounded ? Deadline::in(std::chrono::seconds(timeout) + kGrace) : Deadline::never();
    const auto text = from.hear(deadline);
    if (!text) return complain("connection timed out");
    if (text->empty()) return any ? 0 : complain("the job has closed the connection");
    any = true;
    std::fwrite(text->data(), 1, text->size(), stdout);
    std::fflush(stdout);
  }
}

}  // namespace

int askForReport(const RasQuestion& question) {
  const Target target = targetOf(question);
  const Greeting greeting = reach(target);
  if (!greeting.conversation) {
    complain(greeting.problem);
    return complain(
        fmt::format("no job can be asked at {}:{}. Does one run on that host, with NCCL_RAS_ENABLE unset or 1? An INFO "
                    "line \"RAS client listening socket at\" of its processes (NCCL_DEBUG=INFO) says where they answer",
                    target.host, target.port));
  }
  Conversation& with = *greeting.conversation;
  if (!order(with, fmt::format("TIMEOUT {}", question.timeout))) return 1;
  if (!question.format.empty() && !order(with, "SET FORMAT " + question.format)) return 1;
  if (question.monitor) {
    if (!order(with, question.groups.empty() ? "MONITOR" : "MONITOR " + question.groups)) return 1;
    std::fprintf(stderr, "Events of the job at %s:%s. End with Ctrl-C.\n\n", target.host.c_str(), target.port.c_str());
    return printAll(with, false, 0);
  }
  if (!with.say(question.verbose ? "VERBOSE STATUS\n" : "STATUS\n"))
    return complain("the job has closed the connection");
  return printAll(with, question.timeout > 0, question.timeout);
}

}  // namespace tutti
