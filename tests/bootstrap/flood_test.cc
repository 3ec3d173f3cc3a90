// Strangers in great numbers only delay, and cost few descriptors.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "bootstrap/unique_id.h"
#include "link/knocking.h"
#include "local_ranks.h"
#include "strangers.h"

namespace tutti::bootstrap {
namespace {

constexpr int kSilent = 600;

/// A process of strangers: some hold connections on which they say little or nothing, the others come and go, or say a
/// hello that everybody knows. Uses system calls only: it runs after a fork. Ends with its parent's signal.
[[noreturn]] void flood(const std::vector<Address>& victims) {
  for (unsigned i = 0;; ++i) {
    const Address& at = victims[i / 8 % victims.size()];
    const int fd = ::socket(at.family(), SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0) ::usleep(1000);
    (void)::connect(fd, at.raw(), at.length());
    Hello hello{};
    hello.head = {0x31747554, kProtocolVersion, 1, 0};
    if (i % 3 == 0) {
      ::usleep(100);
      (void)::send(fd, &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    // Who has said something is met at once, who has not after a second.
    if (i % 6 == 1) (void)::send(fd, &hello.head, sizeof hello.head, MSG_NOSIGNAL | MSG_DONTWAIT);
    // The oldest of the silent ones goes when its number comes round again.
    if (i % 3 != 1) ::close(fd);
    if (i > 3 * kSilent) ::close(static_cast<int>(3 + i % kSilent));
    if (i % 16 == 0) ::usleep(2000);
  }
}

TEST(BootstrapFlood, AllInitsSucceedWithFewDescriptorsForStrangers) {
  constexpr int kRanks = 4;
  const auto settings = test::localSettings(milliseconds(50'000));
  const auto ids = test::makeIds(6, settings);
  std::vector<Address> victims;
  for (const ncclUniqueId& id : ids) victims.push_back(decodeUniqueId(id).value().root);
  const int before = test::descriptors();
  const pid_t strangers = ::fork();
  if (strangers == 0) flood(victims);
  std::this_thread::sleep_for(milliseconds(300));
  std::atomic<bool> done = false;
  std::atomic<int> most{0};
  std::thread counter([&] {
    while (!done) {
      most = std::max(most.load(), test::descriptors() - before);
      std::this_thread::sleep_for(milliseconds(20));
    }
  });
  for (const ncclUniqueId& id : ids) {
    test::runRanks(kRanks, [&](int rank) {
      auto joined = Bootstrap::join(test::joinOptions({id}, rank, kRanks, settings));
      ASSERT_TRUE(joined.ok()) << rank;
      EXPECT_TRUE(joined.value()->barrier().ok());
    });
  }
  done = true;
  counter.join();
  ::kill(strangers, SIGKILL);
  ::waitpid(strangers, nullptr, 0);
  // Each rank has some of its own: a listener, a poller, its neighbours, and one to look at folders.
  EXPECT_LE(most, 64 + 8 * kRanks);
}

}  // namespace
}  // namespace tutti::bootstrap
