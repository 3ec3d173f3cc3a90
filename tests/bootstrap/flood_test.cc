// Strangers in great numbers only delay, and cost few descriptors.
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "bootstrap/unique_id.h"
#include "link/knocking.h"
#include "local_ranks.h"

namespace tutti::bootstrap {
namespace {

constexpr int kSilent = 300;

/// A process of strangers: some hold silent connections, the others come and go, or say a hello that everybody knows.
/// Uses system calls only: it runs after a fork. Ends with its parent's signal.
[[noreturn]] void flood(const Address& at) {
  for (unsigned i = 0;; ++i) {
    const int fd = ::socket(at.family(), SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0) ::usleep(1000);
    (void)::connect(fd, at.raw(), at.length());
    Hello hello{};
    hello.head = {0x31747554, kProtocolVersion, 1, 0};
    if (i % 3 == 0) {
      ::usleep(100);
      (void)::send(fd, &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    // The oldest of the silent ones goes when its number comes round again.
    if (i % 3 != 1) ::close(fd);
    if (i > 3 * kSilent) ::close(static_cast<int>(3 + i % kSilent));
    if (i % 16 == 0) ::usleep(2000);
  }
}

int openDescriptors() {
  int count = 0;
  DIR* const all = ::opendir("/proc/self/fd");
  while (::readdir(all) != nullptr) ++count;
  ::closedir(all);
  return count;
}

TEST(BootstrapFlood, AllInitsSucceedWithFewDescriptorsForStrangers) {
  constexpr int kRanks = 4;
  const auto settings = test::localSettings(milliseconds(50'000));
  const auto ids = test::makeIds(6, settings);
  const Address victim = decodeUniqueId(ids[0]).value().root;
  const int before = openDescriptors();
  const pid_t strangers = ::fork();
  if (strangers == 0) flood(victim);
  std::this_thread::sleep_for(milliseconds(300));
  std::atomic<bool> done = false;
  std::atomic<int> most{0};
  std::thread counter([&] {
    while (!done) {
      most = std::max(most.load(), openDescriptors() - before);
      std::this_thread::sleep_for(milliseconds(20));
    }
  });
  test::runRanks(kRanks, [&](int rank) {
    auto joined = Bootstrap::join(test::joinOptions({ids[0]}, rank, kRanks, settings));
    ASSERT_TRUE(joined.ok()) << rank;
    EXPECT_TRUE(joined.value()->barrier().ok());
  });
  done = true;
  counter.join();
  ::kill(strangers, SIGKILL);
  ::waitpid(strangers, nullptr, 0);
  // Each rank has some of its own: a listener, a poller, its neighbours, and one to look at folders.
  EXPECT_LE(most, 64 + 8 * kRanks);
}

}  // namespace
}  // namespace tutti::bootstrap
