// Several hundred ranks talk to one at once.
#include <cstring>
#include <numeric>

#include "bootstrap/local_ranks.h"

namespace tutti::bootstrap {
namespace {

constexpr int kRanks = 400;
constexpr int kMessages = 3;

/// Short and long ones, told apart by sender and number.
std::vector<std::byte> messageOf(int rank, int number) {
  std::vector<std::byte> bytes(number == 1 ? 20'000 : 64);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(static_cast<std::size_t>(rank * 7 + number * 31) + i);
  }
  return bytes;
}

TEST(BootstrapCrowd, MessagesOfAllRanksToOneAtOnceAllArrive) {
  test::runJoined(kRanks, 1, [](Bootstrap& self) {
    ASSERT_TRUE(self.barrier().ok());
    if (self.rank() != 0) {
      for (int number = 0; number < kMessages; ++number) {
        ASSERT_TRUE(self.send(0, 5 + number, messageOf(self.rank(), number)).ok());
      }
    } else {
      // Not in the order in which they come.
      for (int rank = kRanks - 1; rank > 0; --rank) {
        for (int number = kMessages - 1; number >= 0; --number) {
          const std::vector<std::byte> wanted = messageOf(rank, number);
          std::vector<std::byte> got(wanted.size());
          ASSERT_TRUE(self.recv(rank, 5 + number, got).ok()) << rank;
          EXPECT_EQ(got, wanted) << rank << ", message " << number;
        }
      }
    }
    ASSERT_TRUE(self.barrier().ok());
  });
}

}  // namespace
}  // namespace tutti::bootstrap
