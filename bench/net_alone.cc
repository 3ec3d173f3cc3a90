// A built-in network without GPUs: two processes, ping-pong and one-way bandwidth; TCP beside plain send and recv.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/settings/params.h"
#include "base/socket/socket.h"
#include "transport/net/ib/source.h"
#include "transport/net/tcp/net.h"

namespace tutti {
namespace {

constexpr int kDepth = 8;
constexpr std::size_t kLargest = 16 << 20;

double secondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class T>
T must(Result<T> result) {
  if (!result.ok()) {
    static_cast<void>(std::fprintf(stderr, "net_alone: %s\n", lastErrorText()));
    std::_Exit(1);
  }
  return std::move(result).value();
}

/// Calls of the network, by how they ended.
struct CallTimes {
  struct Kind {
    const char* name;
    double seconds = 0;
    int calls = 0;
  };
  Kind posted{"posts of sends"};
  Kind received{"posts of receives"};
  Kind refused{"posts that it has no room for yet"};
  Kind found{"tests of what is done"};
  Kind waited{"tests of what is not"};

  /// Prints what one of `rounds` took.
  void print(double seconds, int rounds) const {
    std::printf("# a round trip of %.1f us:", seconds * 1e6 / rounds);
    for (const Kind* kind : {&posted, &received, &refused, &found, &waited}) {
      std::printf("%s %.1f us in %.1f %s", kind == &posted ? "" : ",", kind->seconds * 1e6 / rounds,
                  static_cast<double>(kind->calls) / rounds, kind->name);
    }
    std::printf("\n");
  }
};

/// One way to move messages in both directions between this process and the other.
class Way {
 public:
  virtual ~Way() = default;
  virtual void send(const std::byte* data, std::size_t bytes) = 0;
  virtual void recv(std::byte* data, std::size_t bytes) = 0;
  /// `count` messages, several under way.
  virtual void sendMany(const std::byte* data, std::size_t bytes, int count) = 0;
  virtual void recvMany(std::byte* data, std::size_t bytes, int count) = 0;
  /// Where what its calls take is added up from now on; null: nowhere.
  virtual void addTo(CallTimes* times) { static_cast<void>(times); }
};

/// Blocking calls on one TCP socket.
class Plain final : public Way {
 public:
  explicit Plain(Fd fd) : fd_(std::move(fd)) {}
  void send(const std::byte* data, std::size_t bytes) override {
    for (std::size_t at = 0; at < bytes;) {
      const ssize_t step = ::send(fd_.get(), data + at, bytes - at, MSG_NOSIGNAL);
      if (step <= 0) std::_Exit(1);
      at += static_cast<std::size_t>(step);
    }
  }
  void recv(std::byte* data, std::size_t bytes) override {
    for (std::size_t at = 0; at < bytes;) {
      const ssize_t step = ::recv(fd_.get(), data + at, bytes - at, 0);
      if (step <= 0) std::_Exit(1);
      at += static_cast<std::size_t>(step);
    }
  }
  void sendMany(const std::byte* data, std::size_t bytes, int count) override {
    for (int i = 0; i < count; ++i) send(data, bytes);
  }
  void recvMany(std::byte* data, std::size_t bytes, int count) override {
    for (int i = 0; i < count; ++i) recv(data, bytes);
  }

 private:
  Fd fd_;
};

/// How a message is waited for.
struct Waiting {
  bool spins = false;
  bool ahead = false;  ///< the next receive is posted before the last message is answered
  bool parts = false;  ///< what calls of the network take is printed
};

/// The network. Where a test finds nothing it sleeps on the connection's descriptor, so that both ways share the
/// machine alike with whatever else runs; with several sockets, which one call cannot wait for, and over verbs, it
/// yields.
class Network final : public Way {
 public:
  /// `data`: what all messages lie in.
  Network(plugin::Net& net, void* sender, void* receiver, std::span<std::byte> data, Waiting waiting)
      : net_(net),
        waiting_(waiting),
        sender_(sender),
        receiver_(receiver),
        sent_(must(net.registerMemory(sender, data.data(), data.size(), plugin::PtrKind::Host))),
        received_(must(net.registerMemory(receiver, data.data(), data.size(), plugin::PtrKind::Host))) {
    if (net.name() != "Socket") return;
    sendFd_ = net::tcp::SocketNet::sendPollFd(sender);
    receiveFd_ = net::tcp::SocketNet::receivePollFd(receiver);
  }
  ~Network() override {
    net_.deregisterMemory(sender_, sent_).ignore();
    net_.deregisterMemory(receiver_, received_).ignore();
    net_.closeSend(sender_).ignore();
    net_.closeRecv(receiver_).ignore();
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  void send(const std::byte* data, std::size_t bytes) override { sendMany(data, bytes, 1); }
  void recv(std::byte* data, std::size_t bytes) override {
    if (!waiting_.ahead) return recvMany(data, bytes, 1);
    const plugin::NetBuffer buffer{.data = data, .bytes = bytes, .registration = received_};
    const auto post = [&] {
      while (ahead_ == nullptr)
        ahead_ = posted(&CallTimes::received, [&] { return net_.irecv(receiver_, {&buffer, 1}); });
    };
    post();
    while (!done(ahead_)) pause();
    ahead_ = nullptr;
    post();
  }
  void sendMany(const std::byte* data, std::size_t bytes, int count) override {
    const plugin::NetBuffer message{.data = const_cast<std::byte*>(data), .bytes = bytes, .registration = sent_};
    pipeline(count, {sendFd_, POLLOUT, 0},
             [&] { return posted(&CallTimes::posted, [&] { return net_.isend(sender_, message); }); });
  }
  void recvMany(std::byte* data, std::size_t bytes, int count) override {
    const plugin::NetBuffer buffer{.data = data, .bytes = bytes, .registration = received_};
    pipeline(count, {receiveFd_, POLLIN, 0}, [&] {
      return posted(&CallTimes::received, [&] { return net_.irecv(receiver_, {&buffer, 1}); });
    });
  }
  void addTo(CallTimes* times) override { times_ = times; }

 private:
  void pause() const {
    if (!waiting_.spins) ::sched_yield();
  }
  /// The network's request; null: not now.
  template <class Call>
  void* posted(CallTimes::Kind CallTimes::*kind, const Call& call) {
    void* request = nullptr;
    const double seconds = secondsOf([&] { request = must(call()); });
    count(request != nullptr ? kind : &CallTimes::refused, seconds);
    return request;
  }
  bool done(void* request) {
    bool over = false;
    const double seconds = secondsOf([&] { over = must(net_.test(request, {})); });
    count(over ? &CallTimes::found : &CallTimes::waited, seconds);
    return over;
  }
  void count(CallTimes::Kind CallTimes::*kind, double seconds) {
    if (times_ == nullptr) return;
    (times_->*kind).seconds += seconds;
    ++(times_->*kind).calls;
  }
  template <class Post>
  void pipeline(int count, pollfd wait, const Post& post) {
    std::array<void*, kDepth> requests{};
    int posted = 0;
    for (int over = 0; over < count;) {
      while (posted < count && posted - over < kDepth) {
        void* const request = post();
        if (request == nullptr) break;  // not now
        requests[static_cast<std::size_t>(posted++ % kDepth)] = request;
      }
      if (over < posted && done(requests[static_cast<std::size_t>(over % kDepth)])) {
        ++over;
      } else if (!waiting_.spins && wait.fd >= 0 && over < posted) {
        static_cast<void>(::poll(&wait, 1, -1));
      } else {
        pause();
      }
    }
  }

  plugin::Net& net_;
  Waiting waiting_;
  CallTimes* times_ = nullptr;
  void* ahead_ = nullptr;  ///< the next receive
  void* sender_;
  void* receiver_;
  void* sent_;
  void* received_;
  int sendFd_ = -1;
  int receiveFd_ = -1;
};

void exchangeBytes(int fd, bool first, const void* mine, void* theirs, std::size_t bytes) {
  const auto put = [&] { return ::write(fd, mine, bytes) == static_cast<ssize_t>(bytes); };
  const auto get = [&] { return ::read(fd, theirs, bytes) == static_cast<ssize_t>(bytes); };
  if (first ? !(put() && get()) : !(get() && put())) std::_Exit(1);
}

std::unique_ptr<Way> openNetwork(plugin::Net& net, int device, int control, bool first, std::span<std::byte> data,
                                 Waiting waiting) {
  plugin::NetHandle mine{}, theirs{};
  void* listener = must(net.listen(device, mine));
  exchangeBytes(control, first, mine.data(), theirs.data(), mine.size());
  void *sender = nullptr, *receiver = nullptr;
  while (sender == nullptr || receiver == nullptr) {
    if (sender == nullptr) sender = must(net.connect(device, theirs));
    if (receiver == nullptr) receiver = must(net.accept(listener));
    ::sched_yield();
  }
  net.closeListen(listener).ignore();
  return std::make_unique<Network>(net, sender, receiver, data, waiting);
}

std::unique_ptr<Way> openPlain(int control, bool first) {
  Address address;
  if (first) {
    auto listener = must(Listener::listen(Address::loopback(AF_INET)));
    exchangeBytes(control, first, &listener.address(), &address, sizeof(address));
    Socket socket = must(listener.accept(Wait{}));
    static_cast<void>(::fcntl(socket.fd(), F_SETFL, 0));
    return std::make_unique<Plain>(socket.release());
  }
  exchangeBytes(control, first, &address, &address, sizeof(address));
  Socket socket = must(Socket::connect(address, Wait{}));
  static_cast<void>(::fcntl(socket.fd(), F_SETFL, 0));
  return std::make_unique<Plain>(socket.release());
}

struct Figures {
  double halfRoundTripUs = 0;
  double gigabytesPerSecond = 0;
};

void pingPong(Way& way, bool first, std::size_t bytes, std::span<std::byte> data, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    if (first) way.send(data.data(), bytes);
    way.recv(data.data(), bytes);
    if (!first) way.send(data.data(), bytes);
  }
}

void takeApart(Way& way, bool first, std::size_t bytes, std::span<std::byte> data) {
  constexpr int kRounds = 500;
  CallTimes times;
  way.addTo(&times);
  const double seconds = secondsOf([&] { pingPong(way, first, bytes, data, kRounds); });
  way.addTo(nullptr);
  if (first) times.print(seconds, kRounds);
}

/// `streams`: also one-way.
Figures measure(Way& way, bool first, std::size_t bytes, std::span<std::byte> data, int repeats, bool streams) {
  const int rounds = static_cast<int>(std::clamp<std::size_t>((16u << 20) / (bytes + 4096), 4, 2000));
  const auto oneWay = [&](int count) {
    if (first) {
      way.sendMany(data.data(), bytes, count);
      way.recv(data.data(), 1);
    } else {
      way.recvMany(data.data(), bytes, count);
      way.send(data.data(), 1);
    }
  };
  Figures best{1e9, 0};
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const double there = secondsOf([&] { pingPong(way, first, bytes, data, rounds); }) / rounds / 2;
    best.halfRoundTripUs = std::min(best.halfRoundTripUs, there * 1e6);
    if (!streams) continue;
    const double stream = secondsOf([&] { oneWay(rounds * 4); }) / (rounds * 4);
    best.gigabytesPerSecond = std::max(best.gigabytesPerSecond, static_cast<double>(bytes) / stream / 1e9);
  }
  return best;
}

void print(const Figures& figures, bool streams) {
  std::printf(" %14.1f", figures.halfRoundTripUs);
  if (streams) std::printf(" %12.4f", figures.gigabytesPerSecond);
}

struct Asked {
  std::string net = "Socket";
  std::vector<int> devices{0, 0};  ///< of each process
  Waiting waiting;
  int repeats = 9;  ///< the best counts
  std::vector<std::size_t> sizes{8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};
};

std::unique_ptr<plugin::NetSource> sourceOf(const Asked& asked) {
  Params params = Params::process();
  if (asked.net == "IB") return net::ib::ibNetSource(params);
  if (params.sockets.ifname.empty()) params.sockets.ifname = "=lo";
  return std::make_unique<net::tcp::SocketNetSource>(params);
}

void run(const Asked& asked, int control, bool first) {
  const auto source = sourceOf(asked);
  const auto net = must(source->open({.commId = 1, .who = first ? "the first process" : "the second process"}));
  std::vector<std::byte> data(*std::max_element(asked.sizes.begin(), asked.sizes.end()));
  const bool beside = asked.net == "Socket";
  const bool streams = !asked.waiting.ahead;  // a receive is left over
  const auto plain = beside ? openPlain(control, first) : nullptr;
  const auto network = openNetwork(*net, asked.devices[first ? 0 : 1], control, first, data, asked.waiting);
  if (first) {
    std::printf("# %s, two processes: half of a round trip, and messages of one direction\n", asked.net.c_str());
    const char* const rate = streams ? "         GB/s" : "";
    std::printf("#%9s %14s%s%s%s\n", "bytes", "network us", rate, beside ? "       plain us" : "", beside ? rate : "");
  }
  for (const std::size_t bytes : asked.sizes) {
    const Figures alone = beside ? measure(*plain, first, bytes, data, asked.repeats, streams) : Figures{};
    const Figures figures = measure(*network, first, bytes, data, asked.repeats, streams);
    if (asked.waiting.parts) takeApart(*network, first, bytes, data);
    if (!first) continue;
    std::printf("%10zu", bytes);
    print(figures, streams);
    if (beside) print(alone, streams);
    std::printf("\n");
    static_cast<void>(std::fflush(stdout));
  }
}

/// The exit status: of the second process where the first has none of its own.
int start(const Asked& asked) {
  int control[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0) return 1;
  const pid_t child = ::fork();
  if (child < 0) return 1;
  const bool first = child != 0;
  ::close(control[first ? 1 : 0]);  // or who is left would wait for ever
  run(asked, control[first ? 0 : 1], first);
  if (!first) return 0;
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  tutti::Asked asked;
  CLI::App app{
      "Time a built-in network between two processes, without GPUs. Settings NCCL_SOCKET_... and NCCL_IB_... "
      "are obeyed; Socket takes the loopback interface where none is set.",
      "net_alone"};
  app.add_option("--net", asked.net, "the network: Socket or IB")->check(CLI::IsMember({"Socket", "IB"}));
  app.add_option("--devices", asked.devices, "the network's device of each process")->delimiter(',')->expected(2);
  app.add_option("--sizes", asked.sizes, "bytes of a message, such as 8,64K,1M")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false));
  app.add_flag("--spin", asked.waiting.spins, "never give the processor away while a message is under way");
  app.add_flag("--ahead", asked.waiting.ahead,
               "in ping-pong, post each receive before the message that it answers: one size alone");
  app.add_flag("--parts", asked.waiting.parts, "print what calls of the network take in ping-pong");
  app.add_option("--repeats", asked.repeats, "timings, of which the best is printed")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  if (asked.waiting.ahead && asked.sizes.size() != 1) {
    static_cast<void>(std::fprintf(stderr, "net_alone: --ahead wants one size: a receive is left over\n"));
    return 2;
  }
  return tutti::start(asked);
}
