// What is said of ranks that do not come.
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/log.h"
#include "bootstrap/link/wire.h"
#include "bootstrap/loop/known_losses.h"
#include "bootstrap/loop/tree.h"
#include "children.h"
#include "failing_ranks.h"

namespace tutti::bootstrap {
namespace {

using namespace test;

TEST(BootstrapAbsent, MissingRankIsNamedToEverybody) {
  const auto settings = test::localSettings(kShort);
  const auto ids = test::makeIds(1, settings);
  expectAllFail({test::joinOptions(ids, 0, 4, settings), test::joinOptions(ids, 1, 4, settings),
                 test::joinOptions(ids, 3, 4, settings)},
                ncclRemoteError, "rank 2 of 4 did not come");
}

/// Who has not heard of a failure yet begins the next communicator, to which those do not come who have.
TEST(BootstrapAbsent, ARankThatDoesNotComeMayHaveGivenUpForAFailureHeardOfJustBefore) {
  KnownLosses::instance().add({"vm", 77, Cause::Failed, "rank 3 (host vm, pid 77) failed: no thread"});
  const auto settings = test::localSettings(kShort);
  const auto ids = test::makeIds(1, settings);
  expectAllFail({test::joinOptions(ids, 0, 3, settings), test::joinOptions(ids, 2, 3, settings)}, ncclRemoteError,
                "rank 1 of 3 did not come");
  EXPECT_NE(std::string(lastErrorText()).find("had failed: rank 3 (host vm, pid 77) failed: no thread"),
            std::string::npos)
      << lastErrorText();
}

/// Otherwise texts would grow with each failure of a process that tries again.
TEST(BootstrapAbsent, AnEarlierFailureIsQuotedOnceAtMost) {
  const auto settings = test::localSettings(milliseconds(300));
  for (int i = 0; i < 3; ++i) {
    expectAllFail({test::joinOptions(test::makeIds(1, settings), 0, 2, settings)}, ncclRemoteError,
                  "rank 1 of 2 did not come");
    const std::string text = lastErrorText();
    constexpr std::string_view kQuote = "perhaps because";
    const std::size_t quote = text.find(kQuote);
    EXPECT_TRUE(quote != std::string::npos || i == 0) << text;
    EXPECT_EQ(text.find(kQuote, quote + 1), std::string::npos) << text;
  }
}

TEST(BootstrapAbsent, GarbageNumbersOfRanksAreRefusedWithTheirValue) {
  const auto settings = test::localSettings(kShort);
  const auto ids = test::makeIds(1, settings);
  for (const int nRanks : {0, -1, kMaxRanks + 1, 0x7fffffff}) {
    expectAllFail({test::joinOptions(ids, 0, nRanks, settings)}, ncclInvalidArgument, std::to_string(nRanks));
  }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCanLimitMemory = false;
#else
constexpr bool kCanLimitMemory = true;
#endif

/// What one rank of as many as there can be has heard, and how much memory it took to say so.
struct Outcome {
  ncclResult_t code = ncclSuccess;
  FixedText<400> text{};
  long kilobytes = 0;
};

long mostKilobytes() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

/// Forked: the limit is for good.
Outcome joinWithLittleMemory(const BootstrapSettings& settings) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + (std::size_t{512} << 20);
  const rlimit limit{most, most};
  EXPECT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  Outcome outcome;
  const long before = mostKilobytes();
  outcome.code = Bootstrap::join(joinOptions(makeIds(1, settings), 0, kMaxRanks, settings)).status().code();
  outcome.kilobytes = mostKilobytes() - before;
  setText(outcome.text, lastErrorText());
  return outcome;
}

TEST(BootstrapAbsent, AMillionRanksThatDoNotComeTakeLittleMemory) {
  if (!kCanLimitMemory) GTEST_SKIP() << "sanitizers need much of it";
  Letters<Outcome> outcomes;
  const ForkedProcess family([&] { outcomes.send(joinWithLittleMemory(localSettings(kShort))); });
  const Outcome outcome = outcomes.receive();
  EXPECT_EQ(outcome.code, ncclRemoteError);
  EXPECT_NE(textOf(outcome.text).find("ranks 1..1048575 of 1048576 did not come"), std::string::npos)
      << textOf(outcome.text);
  EXPECT_LT(outcome.kilobytes, 200 << 10);
  EXPECT_EQ(family.await(), 0);
}

}  // namespace
}  // namespace tutti::bootstrap
