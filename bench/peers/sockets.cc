// What TCP over the loopback interface can carry at all: two processes exchange what a collective of two ranks must
// move each way, both ways at once, between buffers of that size, and do nothing with it. Two connections, one for each
// way. What is printed is the fastest of several lengths of reads and writes, by one thread for both ways and by one
// for each. Two ranks, started by launch.py.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "meeting.h"
#include "peer.h"

namespace {

constexpr std::size_t kThreadsPay = std::size_t{256} << 10;  // bytes from which waking a thread may pay
constexpr int kPollMs = 60'000;

/// Where to connect to.
struct Address {
  in_port_t port;
};

[[noreturn]] void die(int rank, const char* call, const char* why) {
  std::fprintf(stderr, "rank %d of 2: %s on 127.0.0.1: %s\n", rank, call, why);
  std::exit(1);
}

/// The ways to the other rank and from it.
class Wire {
 public:
  explicit Wire(peer::Meeting& meeting) : rank_(meeting.rank()) {
    auto* address = reinterpret_cast<Address*>(meeting.extra());
    const int listener = rank_ == 0 ? listen(*address) : -1;
    meeting.barrier();
    const int first = rank_ == 0 ? accepted(listener) : connected(*address);
    const int second = rank_ == 0 ? accepted(listener) : connected(*address);
    if (listener >= 0) close(listener);
    out_ = rank_ == 0 ? first : second;
    in_ = rank_ == 0 ? second : first;
  }
  ~Wire() {
    close(out_);
    close(in_);
  }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  /// A part of a buffer. `flags`: MSG_DONTWAIT, or 0 to wait for the first byte. Returns how many bytes moved.
  std::size_t sendSome(const char* data, std::size_t bytes, int flags) const {
    const ssize_t moved = send(out_, data, bytes, flags | MSG_NOSIGNAL);
    if (moved < 0 && !again()) die(rank_, "send", std::strerror(errno));
    return moved < 0 ? 0 : static_cast<std::size_t>(moved);
  }
  std::size_t receiveSome(char* data, std::size_t bytes, int flags) const {
    const ssize_t moved = recv(in_, data, bytes, flags);
    if (moved == 0) die(rank_, "recv", "the other rank is gone");
    if (moved < 0 && !again()) die(rank_, "recv", std::strerror(errno));
    return moved < 0 ? 0 : static_cast<std::size_t>(moved);
  }
  void waitFor(bool toSend, bool toReceive) const {
    pollfd ends[2] = {{toSend ? out_ : -1, POLLOUT, 0}, {toReceive ? in_ : -1, POLLIN, 0}};
    const int ready = poll(ends, 2, kPollMs);
    if (ready == 0) die(rank_, "poll", "the other rank does nothing for a minute");
    if (ready < 0 && !again()) die(rank_, "poll", std::strerror(errno));
  }

 private:
  static bool again() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

  static sockaddr_in loopback(in_port_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = port;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  int listen(Address& address) const {
    sockaddr_in own = loopback(0);
    socklen_t length = sizeof own;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto* any = reinterpret_cast<const sockaddr*>(&own);
    if (listener < 0 || bind(listener, any, sizeof own) != 0 || ::listen(listener, 2) != 0 ||
        getsockname(listener, reinterpret_cast<sockaddr*>(&own), &length) != 0) {
      die(rank_, "listen", std::strerror(errno));
    }
    address.port = own.sin_port;
    return listener;
  }
  int connected(const Address& address) const {
    const sockaddr_in other = loopback(address.port);
    const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0 || connect(made, reinterpret_cast<const sockaddr*>(&other), sizeof other) != 0) {
      die(rank_, "connect", std::strerror(errno));
    }
    return withoutDelay(made);
  }
  int accepted(int listener) const {
    const int made = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (made < 0) die(rank_, "accept", std::strerror(errno));
    return withoutDelay(made);
  }
  int withoutDelay(int made) const {
    const int one = 1;
    if (setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0) {
      die(rank_, "setsockopt(TCP_NODELAY)", std::strerror(errno));
    }
    return made;
  }

  int rank_;
  int out_ = -1;
  int in_ = -1;
};

/// What one rank sends and receives in a call.
struct Load {
  std::vector<char> out;
  std::vector<char> in;
};

void sendAll(const Wire& wire, const Load& load, std::size_t chunk) {
  for (std::size_t at = 0; at < load.out.size();) {
    at += wire.sendSome(load.out.data() + at, std::min(chunk, load.out.size() - at), 0);
  }
}

void receiveAll(const Wire& wire, Load& load, std::size_t chunk) {
  for (std::size_t at = 0; at < load.in.size();) {
    at += wire.receiveSome(load.in.data() + at, std::min(chunk, load.in.size() - at), 0);
  }
}

/// One thread for both ways, in turns.
void exchangeInTurns(const Wire& wire, Load& load, std::size_t chunk) {
  std::size_t sent = 0;
  std::size_t received = 0;
  while (sent < load.out.size() || received < load.in.size()) {
    const std::size_t toSend = std::min(chunk, load.out.size() - sent);
    const std::size_t toReceive = std::min(chunk, load.in.size() - received);
    const std::size_t out = toSend > 0 ? wire.sendSome(load.out.data() + sent, toSend, MSG_DONTWAIT) : 0;
    const std::size_t in = toReceive > 0 ? wire.receiveSome(load.in.data() + received, toReceive, MSG_DONTWAIT) : 0;
    sent += out;
    received += in;
    if (out + in == 0) wire.waitFor(toSend > 0, toReceive > 0);
  }
}

/// A thread that sends, beside the one that receives.
class SendingThread {
 public:
  SendingThread(const Wire& wire, const Load& load, std::size_t chunk)
      : thread_([this, &wire, &load, chunk] {
          for (unsigned turn = 0;; ++turn) {
            asked_.wait(turn, std::memory_order_acquire);
            if (ends_.load(std::memory_order_acquire)) return;
            sendAll(wire, load, chunk);
            done_.store(turn + 1, std::memory_order_release);
            done_.notify_one();
          }
        }) {}
  ~SendingThread() {
    ends_.store(true, std::memory_order_release);
    ask();
    thread_.join();
  }
  void ask() {
    asked_.fetch_add(1, std::memory_order_acq_rel);
    asked_.notify_one();
  }
  void wait() {
    const unsigned wanted = asked_.load(std::memory_order_acquire);
    for (unsigned done; (done = done_.load(std::memory_order_acquire)) != wanted;) done_.wait(done);
  }

 private:
  std::atomic<unsigned> asked_ = 0;
  std::atomic<unsigned> done_ = 0;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

class Ranks : public peer::HeapPeer {
 public:
  Ranks() : meeting_(4096, true), wire_(checked(meeting_)) {}
  int rank() const override { return meeting_.rank(); }
  int size() const override { return meeting_.size(); }
  void barrier() override { meeting_.barrier(); }
  double largest(double value) override { return meeting_.largest(value); }
  std::function<void()> prepare(peer::Call&) override {
    return [] {};
  }  // no collective: measure() is used
  const Wire& wire() const { return wire_; }

 private:
  static peer::Meeting& checked(peer::Meeting& meeting) {
    if (meeting.size() == 2) return meeting;
    std::fprintf(stderr, "there are %d ranks; this program measures two\n", meeting.size());
    std::exit(2);
  }
  peer::Meeting meeting_;
  Wire wire_;
};

/// What `rank` of two must send at least, of a collective whose larger buffer has `bytes`.
std::size_t bytesFrom(int rank, peer::Op op, std::size_t bytes) {
  switch (op) {
    case peer::Op::AllReduce:
    case peer::Op::SendRecv:
      return bytes;
    case peer::Op::AllGather:
    case peer::Op::ReduceScatter:
    case peer::Op::AlltoAll:
      return bytes / 2;
    case peer::Op::Broadcast:
      return rank == 0 ? bytes : 0;
  }
  return 0;
}

char byteAt(int rank, std::size_t i) {
  return static_cast<char>((i * 7 + static_cast<std::size_t>(rank) * 5) % 251);
}

/// Bytes that came wrong, of all ranks the most.
double wrongBytes(Ranks& ranks, Load& load) {
  for (std::size_t i = 0; i < load.out.size(); ++i) load.out[i] = byteAt(ranks.rank(), i);
  std::fill(load.in.begin(), load.in.end(), '\xff');
  ranks.barrier();
  exchangeInTurns(ranks.wire(), load, 64 << 10);
  double wrong = 0;
  for (std::size_t i = 0; i < load.in.size(); ++i) wrong += load.in[i] != byteAt(1 - ranks.rank(), i);
  return ranks.largest(wrong);
}

/// Seconds per exchange, of the fastest manner; `budget` is for all together.
double measure(Ranks& ranks, Load& load, double budget) {
  const std::size_t most = std::max(load.out.size(), load.in.size());
  std::vector<std::size_t> chunks{64 << 10};
  for (const std::size_t chunk : {std::size_t{512} << 10, std::size_t{4} << 20}) {
    if (most > chunks.back()) chunks.push_back(chunk);
  }
  const bool threads = most >= kThreadsPay;
  const double each = budget / static_cast<double>(chunks.size() * (threads ? 2 : 1));
  double best = 0;
  const auto take = [&](const std::function<void()>& run) {
    const double seconds = peer::timeCalls(ranks, run, each);
    if (best == 0 || seconds < best) best = seconds;
  };
  for (const std::size_t chunk : chunks) {
    take([&] { exchangeInTurns(ranks.wire(), load, chunk); });
    if (!threads) continue;
    SendingThread sending(ranks.wire(), load, chunk);
    take([&] {
      sending.ask();
      receiveAll(ranks.wire(), load, chunk);
      sending.wait();
    });
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const peer::Options options = peer::parse(argc, argv, {});
  Ranks ranks;
  bool right = true;
  for (const std::size_t bytes : options.sizes) {
    Load load;
    load.out.resize(bytesFrom(ranks.rank(), options.op, bytes));
    load.in.resize(bytesFrom(1 - ranks.rank(), options.op, bytes));
    const double wrong = wrongBytes(ranks, load);
    const double seconds = measure(ranks, load, options.budget);
    if (ranks.rank() == 0) {
      std::printf("{\"bytes\": %zu, \"time_us_b2b\": %.3f, \"errors\": %.0f}\n", bytes, seconds * 1e6, wrong);
      std::fflush(stdout);
    }
    right = right && wrong == 0;
  }
  return right ? 0 : 1;
}
