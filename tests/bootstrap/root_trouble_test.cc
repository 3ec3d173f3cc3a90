// What ranks are told of a root that does not answer them as it should: whatever is not known is not said.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "bootstrap/link/wire.h"
#include "bootstrap/unique_id.h"
#include "children.h"
#include "failing_ranks.h"

namespace tutti::bootstrap {
namespace {

using namespace test;

TEST(BootstrapRootTrouble, WrongSecretIsRefused) {
  const auto settings = test::localSettings(kShort);
  const auto ids = test::makeIds(1, settings);
  UniqueId forged = decodeUniqueId(ids[0]).value();
  forged.secret[5] ^= std::byte{1};
  const std::vector<ncclUniqueId> wrong = {encodeUniqueId(forged)};
  expectAllFail({test::joinOptions(wrong, 0, 2, settings)}, ncclInvalidUsage, "does not share this communicator's key");
  expectAllFail({test::joinOptions(wrong, 0, 2, settings)}, ncclInvalidUsage, "in place of the bootstrap root at 127.");
}

TEST(BootstrapRootTrouble, UsedUpIdSaysSo) {
  const auto settings = test::localSettings(kShort);
  UniqueId gone;
  gone.root = Address::loopback(AF_INET, 1);
  const std::vector<ncclUniqueId> ids = {encodeUniqueId(gone)};
  expectAllFail({test::joinOptions(ids, 0, 2, settings)}, ncclRemoteError, "cannot connect to the bootstrap root");
}

TEST(BootstrapRootTrouble, AStoppedRootIsNotSaidToBeDead) {
  if (!kCanForkWithThreads) GTEST_SKIP() << "ThreadSanitizer allows no threads after fork";
  test::allowLog("has not answered rank 1 for ");
  auto settings = test::localSettings();
  settings.handshakeTimeout = milliseconds(500);
  Letters<ncclUniqueId> ids;
  const ForkedProcess root([&] {
    ids.send(createUniqueId(settings).value());
    ::raise(SIGSTOP);
  });
  const ncclUniqueId id = ids.receive();
  ASSERT_EQ(::waitpid(root.pid(), nullptr, WUNTRACED), root.pid());
  EXPECT_EQ(Bootstrap::join(test::joinOptions({id}, 1, 2, settings)).status().code(), ncclRemoteError);
  const std::string text = lastErrorText();
  EXPECT_NE(text.find("has not answered rank 1 for "), std::string::npos) << text;
  EXPECT_EQ(text.find("died"), std::string::npos) << text;
}

/// A rank that joins on a thread of its own, and hears that it cannot.
class Refused {
 public:
  Refused(const ncclUniqueId& id, int rank, int nRanks, const BootstrapSettings& settings)
      : thread_([=, this] {
          EXPECT_FALSE(Bootstrap::join(test::joinOptions({id}, rank, nRanks, settings)).ok());
          text_ = lastErrorText();
        }) {}
  Refused(const Refused&) = delete;
  ~Refused() {
    if (thread_.joinable()) thread_.join();
  }
  /// What it has heard in the end; once.
  std::string text() {
    thread_.join();
    return text_;
  }

 private:
  std::string text_;
  std::thread thread_;
};

/// What two ranks hear of a root that has no descriptors left, the first of which has begun to join that long before.
std::array<std::string, 2> heardOfARootWithoutDescriptors(milliseconds before) {
  auto settings = test::localSettings();
  settings.handshakeTimeout = milliseconds(1000);
  Letters<ncclUniqueId> ids;
  Letters<char> words;
  Letters<char> answers;
  const ForkedProcess root([&] {
    const rlimit few{256, 256};  // so that none can be had by raising it
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    ids.send(createUniqueId(settings).value());
    words.receive();
    while (::dup(2) >= 0) continue;
    answers.send('y');
    ::pause();
  });
  const ncclUniqueId id = ids.receive();
  Refused first(id, 1, 3, settings);
  std::this_thread::sleep_for(before);
  words.send('x');
  answers.receive();
  Refused second(id, 2, 3, settings);
  return {first.text(), second.text()};
}

TEST(BootstrapRootTrouble, ARootWithoutDescriptorsSaysSo) {
  if (!kCanForkWithThreads) GTEST_SKIP() << "ThreadSanitizer allows no threads after fork";
  test::allowLog("file descriptors");
  bool toldByTheRoot = false;
  // On a busy machine the first rank may come too late to be told by the root itself.
  for (const int before : {300, 3000, 10'000}) {
    const auto start = SteadyClock::now();
    const auto texts = heardOfARootWithoutDescriptors(milliseconds(before));
    EXPECT_LT(secondsSince(start), before / 1e3 + 12);
    for (const std::string& text : texts) {
      EXPECT_NE(text.find("file descriptors"), std::string::npos) << text;
      EXPECT_EQ(text.find("died"), std::string::npos) << text;
    }
    EXPECT_NE(texts[1].find("has not answered rank 2 for "), std::string::npos) << texts[1];
    toldByTheRoot = texts[0].find("cannot let ranks in: its process has no file descriptors left") != std::string::npos;
    if (toldByTheRoot) break;
  }
  EXPECT_TRUE(toldByTheRoot);
}

/// What a rank hears that joins a root of its own process, in which so many descriptors can be opened; "" where it
/// joins.
std::string heardWithDescriptors(int left) {
  auto settings = test::localSettings();
  settings.handshakeTimeout = milliseconds(500);
  Letters<FixedText<600>> texts;
  const ForkedProcess process([&] {
    const rlimit few{256, 256};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    const auto ids = test::makeIds(1, settings);
    int last = -1;
    for (int fd = 0; fd >= 0; fd = ::dup(2)) last = fd;
    for (int i = 0; i < left; ++i) ::close(last - i);
    FixedText<600> text{};
    if (!Bootstrap::join(test::joinOptions(ids, 0, 1, settings)).ok()) setText(text, lastErrorText());
    texts.send(text);
  });
  return textOf(texts.receive());
}

TEST(BootstrapRootTrouble, ARankWhoseOwnProcessLacksDescriptorsSaysSo) {
  if (!kCanForkWithThreads) GTEST_SKIP() << "ThreadSanitizer allows no threads after fork";
  int joined = 0;
  for (int left = 0; left < 14; ++left) {
    const std::string text = heardWithDescriptors(left);
    EXPECT_TRUE(text.empty() || text.find("ulimit -n") != std::string::npos) << left << " were left: " << text;
    joined += text.empty() ? 1 : 0;
  }
  EXPECT_GT(joined, 0) << "fourteen are enough";
}

/// What rank 1 hears of a root whose process forks a child and ends, when rank 1 has joined for that long.
std::string heardOfARootThatHasForked(milliseconds after) {
  auto settings = test::localSettings();
  settings.handshakeTimeout = milliseconds(500);
  settings.peerTimeout = milliseconds(600);
  Letters<ncclUniqueId> ids;
  Letters<char> words;
  const ForkedProcess root([&] {
    ids.send(createUniqueId(settings).value());
    words.receive();
    if (::fork() == 0) ::pause();
  });
  const ncclUniqueId id = ids.receive();
  if (after == milliseconds(0)) {
    words.send('x');
    EXPECT_EQ(root.await(), 0);
  }
  Refused rank(id, 1, 2, settings);
  if (after > milliseconds(0)) {
    std::this_thread::sleep_for(after);
    words.send('x');
    EXPECT_EQ(root.await(), 0);
  }
  return rank.text();
}

TEST(BootstrapRootTrouble, ARootWhoseForkedChildHoldsItsSocketsIsNotSaidToHaveDied) {
  if (!kCanForkWithThreads) GTEST_SKIP() << "ThreadSanitizer allows no threads after fork";
  test::allowLog("a child that it forked holds its sockets");
  for (const int after : {0, 300}) {
    const std::string text = heardOfARootThatHasForked(milliseconds(after));
    EXPECT_NE(text.find("a child that it forked holds its sockets"), std::string::npos) << text;
    EXPECT_EQ(text.find("died"), std::string::npos) << text;
  }
}

TEST(BootstrapRootTrouble, AnIdThatHasServedItsJobIsNotSaidToBeOfOneThatDied) {
  auto settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  std::vector<std::unique_ptr<Bootstrap>> job(2);
  test::runRanks(2, [&](int rank) {
    auto joined = Bootstrap::join(test::joinOptions(ids, rank, 2, settings));
    ASSERT_TRUE(joined.ok());
    job[static_cast<std::size_t>(rank)] = std::move(joined).value();
  });
  test::allowLog("was the id used before");
  test::allowLog("in use by another job");
  settings.timeout = kShort;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Bootstrap::join(test::joinOptions(ids, 1, 2, settings)).status().code(), ncclRemoteError);
    const std::string text = lastErrorText();
    EXPECT_TRUE(text.find("was the id used before") != std::string::npos ||
                text.find("in use by another job") != std::string::npos)
        << text;
    EXPECT_EQ(text.find("died"), std::string::npos) << text;
  }
  for (const auto& rank : job) EXPECT_TRUE(rank->lost().ok()) << "the job goes on";
}

}  // namespace
}  // namespace tutti::bootstrap
