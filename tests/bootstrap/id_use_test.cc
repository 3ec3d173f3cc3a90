// Roots end with the last user of their id in this process.
#include "bootstrap/id_use.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

#include "base/log.h"
#include "bootstrap/unique_id.h"
#include "children.h"
#include "link/knocking.h"
#include "local_ranks.h"

namespace tutti::bootstrap {
namespace {

std::ptrdiff_t entriesOf(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return std::distance(begin(all), end(all));
}
std::ptrdiff_t threads() {
  return entriesOf("/proc/self/task");
}
std::ptrdiff_t descriptors() {
  return entriesOf("/proc/self/fd");
}

/// What a root was told.
struct FakeRoot final : RunningRoot {
  void tell(const Notice& failure) override { told.push_back(failure.text); }
  void leave() override { ++left; }
  void end() override { ++ended; }
  void endWithProcess() override { hasEnded_ = true; }
  bool hasEnded() const override { return hasEnded_; }
  std::vector<std::string> told;
  int left = 0;
  int ended = 0;

 private:
  bool hasEnded_ = false;
};

std::vector<UniqueId> someId() {
  UniqueId id;
  fillRandom(id.secret);
  return {id};
}

TEST(IdUse, ARootHearsOfEveryFailureAndIsLeftByTheLastUser) {
  ASSERT_TRUE(initCrypto().ok());
  const auto root = std::make_shared<FakeRoot>();
  const auto ids = someId();
  registerRoot(ids[0].secret, root);
  IdUse first(ids);
  IdUse second(ids);
  first.failed({1, ncclSystemError, "host", "the disk is full"});
  EXPECT_EQ(root->told, std::vector<std::string>{"the disk is full"});
  first.release();
  first.release();
  EXPECT_EQ(root->left, 0) << "the other still joins";
  second.release();
  EXPECT_EQ(root->left, 1);
}

TEST(IdUse, ARootWhoseUsersHaveAllJoinedIsNotLeft) {
  ASSERT_TRUE(initCrypto().ok());
  const auto root = std::make_shared<FakeRoot>();
  const auto ids = someId();
  registerRoot(ids[0].secret, root);
  { const IdUse use(ids); }
  EXPECT_EQ(root->left, 0) << "ranks of other processes may not have come yet";
}

TEST(IdUse, FewRootsStayForLatecomers) {
  ASSERT_TRUE(initCrypto().ok());
  std::vector<std::shared_ptr<FakeRoot>> roots;
  for (int i = 0; i < 7; ++i) {
    roots.push_back(std::make_shared<FakeRoot>());
    IdUse use({});
    use.own(roots.back());
    use.failed({0, ncclSystemError, "host", "no"});
  }
  const auto ended = std::count_if(roots.begin(), roots.end(), [](const auto& root) { return root->ended == 1; });
  EXPECT_EQ(ended, 3);
  EXPECT_EQ(roots.back()->ended, 0);
}

TEST(IdUse, FailedInitsLeaveNoThreadsAndNoDescriptors) {
  test::allowLog("given up");
  const auto settings = test::localSettings();
  const auto threadsBefore = threads();
  const auto descriptorsBefore = descriptors();
  for (int i = 0; i < 150; ++i) {
    const auto ids = test::makeIds(1, settings);
    Abort abort;
    abort.raise(fail(ncclInternalError, "given up"), "given up");
    JoinOptions options = test::joinOptions(ids, 0, 2, settings);
    options.abort = &abort;
    ASSERT_FALSE(Bootstrap::join(options).ok());
  }
  EXPECT_TRUE(test::eventually([&] { return threads() <= threadsBefore + 6; })) << threads();
  EXPECT_TRUE(test::eventually([&] { return descriptors() <= descriptorsBefore + 30; })) << descriptors();
  EXPECT_TRUE(test::eventually([&] { return threads() <= threadsBefore; })) << threads();
  EXPECT_TRUE(test::eventually([&] { return descriptors() <= descriptorsBefore + 1; })) << descriptors();
}

TEST(IdUse, AnInitThatIsRefusedForItsArgumentsMayBeCalledAgain) {
  test::expectLog("invalid rank requested: 2/2");
  const auto settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  EXPECT_EQ(Bootstrap::join(test::joinOptions(ids, 2, 2, settings)).status().code(), ncclInvalidArgument);
  test::runRanks(2, [&](int rank) {
    auto joined = Bootstrap::join(test::joinOptions(ids, rank, 2, settings));
    ASSERT_TRUE(joined.ok());
    EXPECT_TRUE(joined.value()->barrier().ok());
  });
}

/// They wait for a rank that does not come when they are told to give up.
TEST(IdUse, InitsThatFailAfterTheyHaveCheckedInLeaveNothing) {
  test::allowLog("given up");
  test::allowLog("aborted its communicator");
  const auto settings = test::localSettings(std::chrono::seconds(60));
  const auto threadsBefore = threads();
  const auto descriptorsBefore = descriptors();
  constexpr int kInits = 20;
  test::runRanks(kInits, [&](int) {
    const auto ids = test::makeIds(1, settings);
    Abort abort;
    JoinOptions options = test::joinOptions(ids, 0, 2, settings);
    options.abort = &abort;
    std::thread raiser([&] {
      std::this_thread::sleep_for(milliseconds(200));
      abort.raise(fail(ncclInternalError, "given up"), "given up");
    });
    EXPECT_EQ(Bootstrap::join(options).status().code(), ncclInternalError);
    raiser.join();
  });
  EXPECT_TRUE(test::eventually([&] { return threads() <= threadsBefore; })) << threads();
  EXPECT_TRUE(test::eventually([&] { return descriptors() <= descriptorsBefore + 1; })) << descriptors();
}

TEST(IdUse, WhoComesSoonAfterTheFailureHearsOfIt) {
  test::allowLog("given up");
  test::allowLog("aborted its communicator");
  const auto settings = test::localSettings();
  const auto ids = test::makeIds(1, settings);
  Abort abort;
  abort.raise(fail(ncclInternalError, "given up"), "given up");
  JoinOptions options = test::joinOptions(ids, 0, 3, settings);
  options.abort = &abort;
  ASSERT_FALSE(Bootstrap::join(options).ok());
  // As a rank of another process would: this one's use of the id would be another.
  EXPECT_EQ(Bootstrap::join(test::joinOptions(ids, 1, 3, settings)).status().code(), ncclRemoteError);
  EXPECT_NE(std::string(lastErrorText()).find("aborted its communicator"), std::string::npos) << lastErrorText();
}

/// What rank 1 of 2 hears when the process that made the id, of whose ranks none has come, ends by exit() that long
/// after rank 1 has begun to join. The process's number is put in.
std::string heardOfAnEnd(milliseconds pause, pid_t& maker) {
  const auto settings = test::localSettings();
  int id[2];
  int go[2];
  EXPECT_EQ(::pipe(id), 0);
  EXPECT_EQ(::pipe(go), 0);
  maker = ::fork();
  if (maker == 0) {
    const auto made = createUniqueId(settings);
    char word = 0;
    const bool good = made.ok() && ::write(id[1], &made.value(), sizeof(ncclUniqueId)) == sizeof(ncclUniqueId) &&
                      ::read(go[0], &word, 1) == 1;
    endRoots(Deadline::in(std::chrono::seconds(20)));
    ::_exit(good ? 0 : 1);
  }
  ::close(id[1]);
  ncclUniqueId made{};
  EXPECT_EQ(::read(id[0], &made, sizeof(made)), static_cast<ssize_t>(sizeof(made)));
  std::string text;
  std::thread waiting([&] {
    EXPECT_EQ(Bootstrap::join(test::joinOptions({made}, 1, 2, settings)).status().code(), ncclRemoteError);
    text = lastErrorText();
  });
  std::this_thread::sleep_for(pause);
  EXPECT_EQ(::write(go[1], "g", 1), 1);
  waiting.join();
  int status = -1;
  EXPECT_EQ(::waitpid(maker, &status, 0), maker);
  EXPECT_EQ(status, 0);
  for (const int fd : {id[0], go[0], go[1]}) ::close(fd);
  return text;
}

TEST(IdUse, AProcessThatEndsSaysSoToThoseWhoWaitAtItsRoots) {
  if (!test::kCanForkWithThreads) GTEST_SKIP() << "ThreadSanitizer allows no threads after fork";
  test::allowLog("ended by exit()");
  test::allowLog("cannot connect to");
  pid_t maker = 0;
  std::string text;
  // On a busy machine rank 1 may come later than the end, and then finds nobody.
  for (const int pause : {300, 3000, 15'000}) {
    text = heardOfAnEnd(milliseconds(pause), maker);
    if (text.find("cannot connect to") == std::string::npos) break;
  }
  EXPECT_NE(text.find("Bootstrap: process " + std::to_string(maker) + " on host"), std::string::npos) << text;
  EXPECT_NE(text.find("which made the unique id, left while"), std::string::npos) << text;
}

}  // namespace
}  // namespace tutti::bootstrap
