// Ranks whose process runs out of host memory.
#include <atomic>
#include <string>
#include <thread>

#include "base/log.h"
#include "bootstrap/local_ranks.h"
#include "support/short_memory.h"

namespace tutti::bootstrap {
namespace {

using namespace test;

constexpr std::size_t kMessage = 5'000'000;

TEST(BootstrapShortage, ARankWithoutMemoryForAMessageFailsAndIsNamed) {
  allowLog("no host memory");
  std::atomic<int> done{0};
  runJoined(3, 1, [&](Bootstrap& bootstrap) {
    if (bootstrap.rank() == 0) {
      const std::vector<std::byte> message(kMessage);
      const ShortMemory low(kMessage);
      EXPECT_TRUE(bootstrap.send(1, 7, message).ok());
      while (done < 2) std::this_thread::sleep_for(milliseconds(1));
    } else {
      std::vector<std::byte> message(kMessage - 1);
      EXPECT_EQ(bootstrap.recv(0, bootstrap.rank() == 1 ? 7 : 8, message).code(), ncclSystemError);
      const std::string said = lastErrorText();
      EXPECT_NE(said.find("rank 1"), std::string::npos) << said;
      EXPECT_NE(said.find("no host memory"), std::string::npos) << said;
      ++done;
    }
  });
  EXPECT_GE(ShortMemory::refusals(), 1);
}

/// A life of three ranks, of which any step may fail; no step may hang or end the process. Counts the ranks that got to
/// its end.
void liveOnce(std::atomic<int>& done) {
  const BootstrapSettings settings = localSettings(milliseconds(1000));
  std::vector<ncclUniqueId> ids;
  try {
    ids = makeIds(1, settings);
  } catch (const std::bad_alloc&) {
    return;
  }
  runRanks(3, [&](int rank) {
    try {
      auto joined = Bootstrap::join(joinOptions(ids, rank, 3, settings));
      if (!joined.ok()) return;
      Bootstrap& bootstrap = *joined.value();
      Status status = bootstrap.barrier();
      const std::vector<std::byte> message(10'000);
      std::vector<std::byte> received(10'000);
      if (status.ok()) status = bootstrap.send((rank + 1) % 3, 7, message);
      if (status.ok()) status = bootstrap.recv((rank + 2) % 3, 7, received);
      if (status.ok()) status = bootstrap.barrier();
      if (!status.ok()) return;
      bootstrap.leave();
      ++done;
    } catch (const std::bad_alloc&) {  // what the API makes an error of
    }
  });
}

TEST(BootstrapShortage, AnyAllocationMayFail) {
  allowLog("");
  std::atomic<int> done{0};
  refuseOneByOne(
      30, std::chrono::seconds(15), [&] { liveOnce(done); }, [&] { return done = 0, liveOnce(done), done == 3; });
}

}  // namespace
}  // namespace tutti::bootstrap
