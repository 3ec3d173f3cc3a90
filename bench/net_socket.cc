// The built-in network against plain send and recv: two processes over loopback, ping-pong and one-way bandwidth.
//   net_socket [threads sockets [sndbuf rcvbuf]]
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "base/socket/socket.h"
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
  if (!result.ok()) std::_Exit(1);
  return std::move(result).value();
}

/// One way to move messages in both directions between this process and the other.
class Way {
 public:
  virtual ~Way() = default;
  virtual void send(const std::byte* data, std::size_t bytes) = 0;
  virtual void recv(std::byte* data, std::size_t bytes) = 0;
  /// `count` messages, several under way.
  virtual void sendMany(const std::byte* data, std::size_t bytes, int count) = 0;
  virtual void recvMany(std::byte* data, std::size_t bytes, int count) = 0;
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

/// The network. Where a test finds nothing it sleeps on the connection's descriptor, so that both ways share the
/// machine alike with whatever else runs; with several sockets, which one call cannot wait for, it yields.
class Network final : public Way {
 public:
  Network(plugin::Net& net, void* sender, void* receiver) : net_(net), sender_(sender), receiver_(receiver) {}
  ~Network() override {
    net_.closeSend(sender_).ignore();
    net_.closeRecv(receiver_).ignore();
  }
  void send(const std::byte* data, std::size_t bytes) override { sendMany(data, bytes, 1); }
  void recv(std::byte* data, std::size_t bytes) override { recvMany(data, bytes, 1); }
  void sendMany(const std::byte* data, std::size_t bytes, int count) override {
    const pollfd wait{net::tcp::SocketNet::sendPollFd(sender_), POLLOUT, 0};
    pipeline(count, wait, [&] { return net_.isend(sender_, {.data = const_cast<std::byte*>(data), .bytes = bytes}); });
  }
  void recvMany(std::byte* data, std::size_t bytes, int count) override {
    const plugin::NetBuffer buffer{.data = data, .bytes = bytes};
    const pollfd wait{net::tcp::SocketNet::receivePollFd(receiver_), POLLIN, 0};
    pipeline(count, wait, [&] { return net_.irecv(receiver_, {&buffer, 1}); });
  }

 private:
  template <class Post>
  void pipeline(int count, pollfd wait, const Post& post) {
    std::array<void*, kDepth> requests{};
    int posted = 0;
    for (int done = 0; done < count;) {
      while (posted < count && posted - done < kDepth)
        requests[static_cast<std::size_t>(posted++ % kDepth)] = must(post());
      if (must(net_.test(requests[static_cast<std::size_t>(done % kDepth)], {}))) {
        ++done;
      } else if (wait.fd >= 0) {
        static_cast<void>(::poll(&wait, 1, -1));
      } else {
        ::sched_yield();
      }
    }
  }

  plugin::Net& net_;
  void* sender_;
  void* receiver_;
};

void exchangeBytes(int fd, bool first, const void* mine, void* theirs, std::size_t bytes) {
  const auto put = [&] { return ::write(fd, mine, bytes) == static_cast<ssize_t>(bytes); };
  const auto get = [&] { return ::read(fd, theirs, bytes) == static_cast<ssize_t>(bytes); };
  if (first ? !(put() && get()) : !(get() && put())) std::_Exit(1);
}

std::unique_ptr<Way> openNetwork(plugin::Net& net, int control, bool first) {
  plugin::NetHandle mine{}, theirs{};
  void* listener = must(net.listen(0, mine));
  exchangeBytes(control, first, mine.data(), theirs.data(), mine.size());
  void *sender = nullptr, *receiver = nullptr;
  while (sender == nullptr || receiver == nullptr) {
    if (sender == nullptr) sender = must(net.connect(0, theirs));
    if (receiver == nullptr) receiver = must(net.accept(listener));
    ::sched_yield();
  }
  net.closeListen(listener).ignore();
  return std::make_unique<Network>(net, sender, receiver);
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

Figures measure(Way& way, bool first, std::size_t bytes, std::vector<std::byte>& data) {
  const int rounds = static_cast<int>(std::clamp<std::size_t>((16u << 20) / (bytes + 4096), 4, 2000));
  const auto pingPong = [&](int count) {
    for (int i = 0; i < count; ++i) {
      if (first) way.send(data.data(), bytes);
      way.recv(data.data(), bytes);
      if (!first) way.send(data.data(), bytes);
    }
  };
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
  for (int repeat = 0; repeat < 9; ++repeat) {
    const double there = secondsOf([&] { pingPong(rounds); }) / rounds / 2;
    best.halfRoundTripUs = std::min(best.halfRoundTripUs, there * 1e6);
    const double stream = secondsOf([&] { oneWay(rounds * 4); }) / (rounds * 4);
    best.gigabytesPerSecond = std::max(best.gigabytesPerSecond, static_cast<double>(bytes) / stream / 1e9);
  }
  return best;
}

int run(const Params& params, int control, bool first) {
  net::tcp::SocketNetSource source(params);
  const auto net = must(source.open({.commId = 1}));
  const auto plain = openPlain(control, first);
  const auto network = openNetwork(*net, control, first);
  std::vector<std::byte> data(kLargest);
  if (first) std::printf("%10s %14s %14s %12s %12s\n", "bytes", "plain us", "network us", "plain GB/s", "network GB/s");
  for (std::size_t bytes = 8; bytes <= kLargest; bytes *= bytes < 4096 ? 8 : 4) {
    const Figures one = measure(*plain, first, bytes, data);
    const Figures two = measure(*network, first, bytes, data);
    if (!first) continue;
    std::printf("%10zu %14.1f %14.1f %12.2f %12.2f\n", bytes, one.halfRoundTripUs, two.halfRoundTripUs,
                one.gigabytesPerSecond, two.gigabytesPerSecond);
    static_cast<void>(std::fflush(stdout));
  }
  return 0;
}

int start(int argc, char** argv) {
  Params params;
  params.sockets.ifname = "=lo";
  if (argc > 2) params.sockets.nThreads = std::atoi(argv[1]), params.sockets.socketsPerThread = std::atoi(argv[2]);
  if (argc > 4) params.sockets.sendBuffer = std::atoi(argv[3]), params.sockets.receiveBuffer = std::atoi(argv[4]);
  int control[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, control) != 0) return 1;
  const pid_t child = ::fork();
  const bool first = child != 0;
  const int status = run(params, control[first ? 0 : 1], first);
  if (first) ::waitpid(child, nullptr, 0);
  return status;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  return tutti::start(argc, argv);
}
