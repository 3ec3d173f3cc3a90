// The trace of a process: when there is one, and what points write.
#include "trace/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/log_capture.h"
#include "trace/call.h"
#include "trace/points.h"

namespace tutti::trace {
namespace {

class TraceSession : public testing::Test {
 protected:
  ~TraceSession() override {
    stop();
    ::unlink(path_.c_str());
  }
  std::vector<Record> records() const {
    std::ifstream in(path_, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    FileHeader header;
    if (bytes.size() < kHeaderBytes) return {};
    std::memcpy(&header, bytes.data(), sizeof(header));
    std::vector<Record> found(header.ringRecords);
    std::memcpy(found.data(), bytes.data() + header.ringOffset, found.size() * sizeof(Record));
    std::erase_if(found, [](const Record& record) { return record.sequence == 0; });
    return found;
  }
  Wishes wishes() const { return {path_, 1, {}}; }

  std::string path_ = testing::TempDir() + "tutti-session-" + std::to_string(::getpid());
};

TEST_F(TraceSession, IsOffUnlessItIsAskedFor) {
  start({}, "tutti", 0);
  EXPECT_FALSE(on());
  { const Call call("ncclAllReduce"); }
  EXPECT_TRUE(records().empty());
}

TEST_F(TraceSession, WritesACallWithItsResult) {
  start(wishes(), "tutti", 0);
  ASSERT_TRUE(on());
  {
    Call call("ncclAllReduce");
    call.setResult(5);
  }
  const auto found = records();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, Kind::Call);
  EXPECT_EQ(found[0].a, 5u);
  EXPECT_GE(found[0].end, found[0].begin);
  EXPECT_NE(found[0].thread, 0u);
}

TEST_F(TraceSession, LeavesOutQuestionsThatAreAnsweredAtOnce) {
  start(wishes(), "tutti", 0);
  for (int i = 0; i < 1000; ++i) const Call call("ncclCommGetAsyncError");
  EXPECT_LT(records().size(), 20u);  // those in whose middle the thread had to wait for a processor
}

TEST_F(TraceSession, WritesTheBeginningOfWhatMayTakeLong) {
  start(wishes(), "tutti", 0);
  const Span span(Kind::Stage, 3, "init", Takes::Long);
  const auto found = records();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].flags, kOpen);
  EXPECT_EQ(found[0].comm, 3u);
}

TEST_F(TraceSession, GivesEqualTextsOneNumber) {
  start(wishes(), "tutti", 0);
  static const char kText[] = "ncclAllReduce";
  const std::uint32_t id = staticText(kText);
  EXPECT_NE(id, 0u);
  EXPECT_EQ(staticText(kText), id);
  EXPECT_EQ(text("ncclAllReduce"), id);
  EXPECT_NE(text("ncclBroadcast"), id);
}

TEST_F(TraceSession, WaitsForItsRankWhereTheNameHasIt) {
  const std::string pattern = path_ + "%r";
  path_ += "3";
  start({pattern, 1, {}}, "tutti", -1);
  EXPECT_FALSE(on());
  start({pattern, 1, {}}, "tutti", 3);
  EXPECT_TRUE(on());
  { const Call call("ncclAllReduce"); }
  EXPECT_EQ(records().size(), 1u);
}

TEST_F(TraceSession, GoesOnWithoutAFileAfterOneWarning) {
  test::expectLog("TUTTI_TRACE=/no/such/folder/x: /no/such/folder/x cannot be written: its folder does not exist");
  start({"/no/such/folder/x", 1, {}}, "tutti", 0);
  start({"/no/such/folder/x", 1, {}}, "tutti", 1);
  EXPECT_FALSE(on());
}

TEST_F(TraceSession, IsNotWrittenByTheChildOfAFork) {
  start(wishes(), "tutti", 0);
  { const Call call("ncclAllReduce"); }
  const pid_t child = ::fork();
  if (child == 0) {
    const bool quiet = !on();
    { const Call call("ncclBroadcast"); }
    ::_exit(quiet ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(records().size(), 1u);
  EXPECT_TRUE(on());
}

TEST(TracePattern, NamesHostProcessAndRank) {
  EXPECT_EQ(expandPattern("/x/%h.%p.%r.trace", "gpu07", 42, 3), "/x/gpu07.42.3.trace");
  EXPECT_EQ(expandPattern("100%%%q%", "gpu07", 42, 3), "100%%q%");
}

}  // namespace
}  // namespace tutti::trace
