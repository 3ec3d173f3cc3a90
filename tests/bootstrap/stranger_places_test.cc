// Who connects and does not prove itself has a place for two seconds, of few that all listeners of a process share.
#include <dirent.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/socket/unproven.h"
#include "bootstrap/unique_id.h"
#include "children.h"
#include "link/knocking.h"
#include "local_ranks.h"
#include "strangers.h"

namespace tutti::bootstrap {
namespace {

/// Where this process listens.
std::vector<Address> listening() {
  std::vector<Address> all;
  DIR* const open = ::opendir("/proc/self/fd");
  while (const dirent* one = ::readdir(open)) {
    const int fd = std::atoi(one->d_name);
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
    sockaddr_storage at{};
    size = sizeof at;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0 || at.ss_family == AF_UNIX) continue;
    all.push_back(Address::from(reinterpret_cast<const sockaddr*>(&at)));
  }
  ::closedir(open);
  return all;
}

HelloHead beginningOfAHello() {
  return ClientHandshake(Key(), Purpose::CheckIn, 1, kRootRank).hello().head;
}

/// A root that waits for ranks, and ranks that have joined.
struct Victims {
  Victims() {
    const auto before = listening();
    roots = test::makeIds(2, settings);
    const auto ids = test::makeIds(1, settings);
    test::runRanks(2, [&](int rank) {
      auto joined = Bootstrap::join(test::joinOptions(ids, rank, 2, settings));
      ASSERT_TRUE(joined.ok());
      ranks[static_cast<std::size_t>(rank)] = std::move(joined).value();
    });
    const Address used = decodeUniqueId(ids[0]).value().root;
    for (const Address& at : listening()) {
      if (at != used && std::find(before.begin(), before.end(), at) == before.end()) addresses.push_back(at);
    }
    EXPECT_EQ(addresses.size(), 4U) << "two roots and two ranks";
  }

  BootstrapSettings settings = test::localSettings();
  std::vector<ncclUniqueId> roots;
  std::array<std::unique_ptr<Bootstrap>, 2> ranks;
  std::vector<Address> addresses;
};

std::size_t taken() {
  return UnprovenPlaces::ofProcess().taken();
}

TEST(StrangerPlaces, SilentStrangersAreClosedAfterTwoSeconds) {
  const Victims victims;
  ASSERT_TRUE(test::eventually([] { return taken() == 0; }));
  const HelloHead head = beginningOfAHello();
  std::vector<Socket> strangers;
  const auto start = SteadyClock::now();
  for (const Address& at : victims.addresses) {
    for (int i = 0; i < 3; ++i) {
      strangers.push_back(test::connectTo(at));
      (void)strangers.back().trySend(std::as_bytes(std::span(&head, 1)));
    }
  }
  EXPECT_TRUE(test::eventually([&] { return taken() > 0; }));
  for (Socket& stranger : strangers) {
    EXPECT_GE(test::endOf(stranger), 0) << "it is still there";
    EXPECT_GT(secondsSince(start), 1.0) << "who belongs here may need a moment";
  }
  EXPECT_LT(secondsSince(start), 8.0);
  EXPECT_TRUE(test::eventually([] { return taken() == 0; }));
  for (const auto& rank : victims.ranks) EXPECT_TRUE(rank->lost().ok());
}

/// Comes to one after the other, again and again, and says how a hello begins. System calls only.
[[noreturn]] void besiegeInTurn(const std::vector<Address>& addresses, test::Siege siege) {
  std::array<int, 300> held{};
  for (std::size_t i = 0;; ++i) {
    int& one = held[i % held.size()];
    if (one > 0) ::close(one);
    siege.at = addresses[i % addresses.size()];
    one = test::comeTo(siege, static_cast<long>(i));
    ::usleep(2000);
  }
}

TEST(StrangerPlaces, OfAllRootsAndRanksOfAProcessAreFewTogether) {
  const Victims victims;
  const int before = test::descriptors();
  std::size_t most = 0;
  int mostDescriptors = 0;
  test::Siege siege;
  siege.manner = test::Manner::Head;
  siege.overheard.head = beginningOfAHello();
  const test::ForkedProcess strangers([&] { besiegeInTurn(victims.addresses, siege); });
  const Deadline end = Deadline::in(milliseconds(2500));
  while (!end.expired()) {
    most = std::max(most, taken());
    mostDescriptors = std::max(mostDescriptors, test::descriptors() - before);
    std::this_thread::sleep_for(milliseconds(2));
  }
  EXPECT_GT(most, 0U);
  // Half of the places are for one host.
  EXPECT_LE(most, unprovenPlaces(1 << 20) / 2);
  EXPECT_LE(mostDescriptors, static_cast<int>(unprovenPlaces(1 << 20)));
  for (const auto& rank : victims.ranks) EXPECT_TRUE(rank->lost().ok());
}

}  // namespace
}  // namespace tutti::bootstrap
