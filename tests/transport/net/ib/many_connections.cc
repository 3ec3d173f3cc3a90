// Many connections of one rank come up side by side.
//
//   many_connections COUNT FILE       over the verbs library for tests, which is that file
//   many_connections COUNT FROM TO    over the NICs of these names that this host has
//
// One side connects to COUNT listeners of the other, both in this process, each call in turn and none waiting for its
// peer. A listener is asked 5 ms after the first connect, as a peer that is late; the first one not before all others
// stand, for nobody may wait for it. Then each connection carries a message. Once more one after the other, for
// comparison. Prints how long both took, what a single call took at most, how many
// connections were under way at once, and how many threads and descriptors there were at most. Exits with 1 where a
// connection waits for another, threads come with connections, or descriptors are more than three a connection.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/dl.h"
#include "base/log.h"
#include "base/settings/params.h"
#include "plugin/network/net.h"
#include "support/descriptors.h"
#include "transport/net/ib/fake_verbs.h"
#include "transport/net/ib/source.h"

namespace {

using namespace tutti;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{120};
/// So long a peer does nothing after it could.
constexpr std::chrono::milliseconds kLate{5};

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void fall(const std::string& why) {
  std::printf("many_connections: %s\n", why.c_str());
  std::exit(1);
}

/// Calls `step` until it says true, for two minutes at most.
void until(const std::function<bool()>& step) {
  const Clock::time_point start = Clock::now();
  while (!step()) {
    if (Clock::now() > start + kPatience) fall("something does not come to its end");
    std::this_thread::yield();
  }
}

template <class T>
T need(Result<T> result) {
  if (!result.ok()) fall(lastErrorText());
  return std::move(result).value();
}

std::size_t threadCount() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

/// The most there was of what is taken while connections come up.
struct Peaks {
  std::size_t underWay = 0;
  std::size_t threads = 0;
  std::size_t descriptors = 0;
  double longestCall = 0;

  void lookAgain(std::size_t now) {
    underWay = std::max(underWay, now);
    threads = std::max(threads, threadCount());
    descriptors = std::max(descriptors, test::openDescriptors());
  }
};

struct Connection {
  plugin::NetHandle handle{};
  void* listener = nullptr;
  void* sender = nullptr;
  void* receiver = nullptr;
  Clock::time_point begun;  ///< the first connect
  bool stands() const { return sender != nullptr && receiver != nullptr; }
};

/// Both sides of all connections.
class Both {
 public:
  Both(plugin::Net& from, plugin::Net& to, std::size_t count) : from_(from), to_(to), all_(count) {
    for (Connection& one : all_) one.listener = need(to_.listen(0, one.handle));
  }
  ~Both() {
    for (const Connection& one : all_) {
      from_.closeSend(one.sender).ignore();
      to_.closeRecv(one.receiver).ignore();
      to_.closeListen(one.listener).ignore();
    }
  }

  /// The first one's listener only when all others stand. Returns the seconds that it took, without those of counting
  /// threads and descriptors.
  double bringUpSideBySide() {
    const Clock::time_point start = Clock::now();
    double looking = 0;
    std::size_t standing = 0;
    until([&] {
      const bool othersStand = standing + 1 == all_.size();
      std::size_t underWay = 0;
      for (Connection& one : all_) {
        dial(one);
        underWay += one.stands() ? 0 : 1;
      }
      for (Connection& one : all_) {
        if (&one != &all_.front() || othersStand) answer(one);
      }
      const Clock::time_point look = Clock::now();
      peaks.lookAgain(underWay);
      looking += secondsSince(look);
      standing = static_cast<std::size_t>(
          std::count_if(all_.begin(), all_.end(), [](const Connection& one) { return one.stands(); }));
      return standing == all_.size();
    });
    return secondsSince(start) - looking;
  }
  double bringUpOneByOne() {
    const Clock::time_point start = Clock::now();
    for (Connection& one : all_) {
      until([&] {
        dial(one);
        answer(one);
        return one.stands();
      });
    }
    return secondsSince(start);
  }
  void sendOverEach() {
    for (Connection& one : all_) {
      std::uint64_t out = 4711;
      std::uint64_t in = 0;
      void* const source = need(from_.registerMemory(one.sender, &out, sizeof(out), plugin::PtrKind::Host));
      void* const target = need(to_.registerMemory(one.receiver, &in, sizeof(in), plugin::PtrKind::Host));
      const plugin::NetBuffer place{.data = &in, .bytes = sizeof(in), .registration = target};
      void* const received = need(to_.irecv(one.receiver, {&place, 1}));
      void* sent = nullptr;
      until([&] {
        sent = need(from_.isend(one.sender, {.data = &out, .bytes = sizeof(out), .registration = source}));
        return sent != nullptr;
      });
      until([&] { return need(from_.test(sent, {})); });
      until([&] { return need(to_.test(received, {})); });
      if (in != out) fall("a message is not what was sent");
      to_.deregisterMemory(one.receiver, target).ignore();
      from_.deregisterMemory(one.sender, source).ignore();
    }
  }

  Peaks peaks;

 private:
  void dial(Connection& one) {
    if (one.begun == Clock::time_point()) one.begun = Clock::now();
    if (one.sender == nullptr) one.sender = timed([&] { return need(from_.connect(0, one.handle)); });
  }
  void answer(Connection& one) {
    if (Clock::now() < one.begun + kLate) return;
    if (one.receiver == nullptr) one.receiver = timed([&] { return need(to_.accept(one.listener)); });
  }
  void* timed(const std::function<void*()>& call) {
    const Clock::time_point start = Clock::now();
    void* const made = call();
    peaks.longestCall = std::max(peaks.longestCall, secondsSince(start));
    return made;
  }

  plugin::Net& from_;
  plugin::Net& to_;
  std::vector<Connection> all_;
};

void allowDescriptors(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) fall("RLIMIT_NOFILE cannot be read");
  if (limit.rlim_max < wanted) {
    fall("the limit of descriptors is " + std::to_string(limit.rlim_max) + ", wanted are " + std::to_string(wanted) +
         " (ulimit -Hn)");
  }
  limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, wanted);
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) fall("RLIMIT_NOFILE cannot be raised");
}

/// `library`: of the verbs; "": the system's.
Params settingsFor(const std::string& hca, const std::string& library) {
  Params params;
  params.sockets.ifname = "=lo";
  params.sockets.family = "AF_INET";
  params.ib.hca = "=" + hca;
  params.ib.library = library;
  return params;
}

/// Gives the verbs library for tests two NICs. It is not linked: the system's would find its functions.
void plugFakes(const std::string& file) {
  std::string why;
  DlLibrary library = DlLibrary::open(file, &why);
  const auto find = library.function<test::FakeVerbs* (*)()>("tuttiFakeVerbs");
  if (find == nullptr) fall(file + " is no verbs library for tests: " + why);
  std::vector<test::FakeNic> nics;
  for (const char* name : {"from0", "to0"}) {
    test::FakeNic nic{.name = name, .maxQueuePairs = 100000};
    nic.ports = {{.ethernet = false,
                  .lid = static_cast<std::uint16_t>(nics.size() + 1),
                  .gids = {{"fe80:0:0:1::" + std::to_string(nics.size() + 1), 0}}}};
    nics.push_back(std::move(nic));
  }
  find()->plug(std::move(nics));
  library.leak();
}

struct Side {
  Side(const std::string& hca, const std::string& library) {
    source = net::ib::ibNetSource(settingsFor(hca, library));
    plugin::NetOpening opening{.commId = 0x1234};
    opening.secret.fill(std::byte{7});
    net = need(source->open(opening));
    if (need(net->devices()) < 1) fall("there is no NIC " + hca + " that can be used");
  }
  std::unique_ptr<plugin::NetSource> source;
  std::unique_ptr<plugin::Net> net;
};

/// What was wrong; "": nothing.
std::string judge(const Peaks& peaks, std::size_t count, std::size_t threadsBefore, std::size_t descriptorsBefore) {
  if (peaks.underWay != count) return "not all of them were under way at once: a call waits for its peer";
  if (peaks.threads > threadsBefore) return "connections brought threads with them";
  if (peaks.descriptors > descriptorsBefore + 3 * count) return "a connection has more than three descriptors";
  return {};
}

int run(std::size_t count, const std::string& from, const std::string& to, const std::string& library) {
  allowDescriptors(3 * count + 100);
  if (!library.empty()) plugFakes(library);
  const Side sending(from, library);
  const Side receiving(to, library);
  const std::size_t threads = threadCount();
  const std::size_t descriptors = test::openDescriptors();
  std::string wrong;
  {
    Both both(*sending.net, *receiving.net, count);
    const double seconds = both.bringUpSideBySide();
    both.sendOverEach();
    std::printf(
        "side by side: %zu connections in %.3f s, at most %zu under way at once, the longest call %.3f ms, "
        "%zu threads (%zu before), %zu descriptors (%zu before)\n",
        count, seconds, both.peaks.underWay, both.peaks.longestCall * 1e3, both.peaks.threads, threads,
        both.peaks.descriptors, descriptors);
    wrong = judge(both.peaks, count, threads, descriptors);
  }
  {
    Both both(*sending.net, *receiving.net, count);
    std::printf("one by one: %.3f s\n", both.bringUpOneByOne());
  }
  if (test::openDescriptors() != descriptors) wrong = "descriptors were left behind";
  if (!wrong.empty()) fall(wrong);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (count < 2 || (argc != 3 && argc != 4)) fall("many_connections COUNT FILE, or many_connections COUNT FROM TO");
  return argc == 3 ? run(count, "from0", "to0", argv[2]) : run(count, argv[2], argv[3], "");
}
