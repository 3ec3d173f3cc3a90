// What tutti-info trace makes of traces with known times, and of broken ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "trace/file.h"
#include "trace/points.h"
#include "trace_file.h"
#include "trace_job.h"
#include "trace_perfetto.h"
#include "trace_summary.h"
#include "trace_svg.h"

namespace tutti::tool {
namespace {

using testing::HasSubstr;
using trace::Kind;
using trace::Record;

constexpr std::uint64_t kMilli = 1'000'000;
constexpr std::uint64_t kHash = 0xabcd;

std::string placeOf(int rank) {
  return testing::TempDir() + "tutti-synthetic-" + std::to_string(::getpid()) + "-" + std::to_string(rank);
}

template <class Note>
void addNote(trace::TraceFile& file, trace::NoteType type, const Note& note) {
  file.note(type, std::as_bytes(std::span(&note, 1)).subspan(sizeof(trace::NoteHead)));
}

/// One rank's file, written as the library would.
class Rank {
 public:
  Rank(int rank, int nRanks, std::uint64_t hostHash = 1) : path_(placeOf(rank)) {
    std::string why;
    file_ = trace::TraceFile::create(
        path_, 1U << 20U, {"host" + std::to_string(hostHash), hostHash, 100U + static_cast<unsigned>(rank), "tutti"},
        why);
    EXPECT_NE(file_, nullptr) << why;
    trace::CommNote comm{};
    comm.number = 1;
    comm.rank = rank;
    comm.nRanks = nRanks;
    comm.hash = kHash;
    addNote(*file_, trace::NoteType::Comm, comm);
    allReduce_ = file_->text("AllReduce");
  }
  ~Rank() { ::unlink(path_.c_str()); }
  Rank(const Rank&) = delete;

  void clock(std::uint64_t hostHash, std::int64_t offset, std::uint64_t error) {
    addNote(*file_, trace::NoteType::Clock, trace::ClockNote{{}, hostHash, offset, error, 1});
  }
  /// AllReduce number `number`: called at `asked`, launched in 0.1 ms, its kernel ends at `end`.
  void reduce(std::uint32_t number, std::uint64_t asked, std::uint64_t end) {
    Record op = record(Kind::Op, asked, asked);
    op.number = number;
    op.text = allReduce_;
    op.a = 65536;
    op.b = trace::wordOf(trace::OpWords{-1, 7, 0, 0});
    op.c = std::uint64_t{number} << 32U | number;
    file_->write(op);
    Record launch = record(Kind::Launch, asked, asked + kMilli / 10);
    launch.number = number;
    launch.b = number;
    launch.c = 1;
    file_->write(launch);
    if (end == 0) return;
    Record kernel = record(Kind::Kernel, asked + kMilli / 10, end);
    kernel.number = number;
    kernel.a = trace::kWholeKernel;
    kernel.b = 1;
    file_->write(kernel);
  }
  void step(Kind kind, int peer, std::uint32_t number, std::uint64_t begin, std::uint64_t end) {
    Record step = record(kind, begin, end);
    step.number = number;
    step.a = trace::wordOf(trace::StepWords{peer, 0, 2, 0});
    step.b = 4096;
    file_->write(step);
  }
  trace::TraceFile& file() { return *file_; }
  static Record record(Kind kind, std::uint64_t begin, std::uint64_t end) {
    Record made{};
    made.kind = kind;
    made.begin = begin;
    made.end = end;
    made.comm = 1;
    return made;
  }
  std::vector<std::byte> bytes() const {
    std::ifstream in(path_, std::ios::binary);
    const std::vector<char> chars{std::istreambuf_iterator<char>(in), {}};
    const auto all = std::as_bytes(std::span(chars));
    return {all.begin(), all.end()};
  }
  ProcessTrace read() const {
    std::string why;
    auto trace = readTrace(path_, why);
    EXPECT_TRUE(trace) << why;
    return trace ? *trace : ProcessTrace();
  }

 private:
  std::string path_;
  std::unique_ptr<trace::TraceFile> file_;
  std::uint32_t allReduce_ = 0;
};

/// Rank 2 of 3 comes 5 ms after the others, in 10 operations.
std::vector<ProcessTrace> lateRankOfThree() {
  std::vector<ProcessTrace> traces;
  for (int r = 0; r < 3; ++r) {
    Rank rank(r, 3);
    for (std::uint32_t n = 1; n <= 10; ++n) {
      const std::uint64_t begin = 1000 * kMilli + n * 20 * kMilli;
      rank.reduce(n, begin + (r == 2 ? 5 * kMilli : 0), begin + 7 * kMilli);
    }
    traces.push_back(rank.read());
  }
  return traces;
}

TEST(TraceSummary, NamesTheLateRankHowLateAndWhatTheOthersLost) {
  const Job job = joinTraces(lateRankOfThree());
  ASSERT_EQ(job.operations.size(), 10u);
  EXPECT_EQ(job.operations[0].last(), 2u);
  EXPECT_EQ(job.operations[0].lateness(), 5 * kMilli);
  const std::string text = summaryOf(job);
  EXPECT_THAT(text, HasSubstr("rank 2 (host host1, pid 102), rank 2 of communicator 0xabcd, came last in 10 of 10 "
                              "operations, 5 ms after the last of the others on the average (at most 5 ms, AllReduce "
                              "number 1): the other 2 ranks lost 50 ms each, 100 ms together"));
  EXPECT_THAT(text, HasSubstr("AllReduce of 64 KB on 3 ranks (communicator 0xabcd): 10 times"));
  // Launched in 0.1 ms; then 5 ms for the last, and 1.9 ms of work once it was there.
  EXPECT_THAT(text, HasSubstr("rank 0       100 us               5 ms     0 ns   1.9 ms   (10)"));
  EXPECT_THAT(text, HasSubstr("rank 2       100 us               0 ns     0 ns   1.9 ms   (10)"));
}

TEST(TraceSummary, BlamesNobodyForLittle) {
  std::vector<ProcessTrace> traces;
  for (int r = 0; r < 2; ++r) {
    Rank rank(r, 2);
    rank.reduce(1, 1000 * kMilli + static_cast<unsigned>(r) * 20'000, 1002 * kMilli);
    traces.push_back(rank.read());
  }
  EXPECT_THAT(summaryOf(joinTraces(std::move(traces))), HasSubstr("none came more than 50 us after the others"));
}

TEST(TraceSummary, TellsNetworkFromCopying) {
  Rank rank(0, 1);
  rank.reduce(1, 1000 * kMilli, 1004 * kMilli);
  rank.step(Kind::NetSend, 1, 0, 1001 * kMilli, 1002 * kMilli);
  rank.step(Kind::NetRecv, 1, 0, 1001 * kMilli + kMilli / 2, 1003 * kMilli);
  std::vector<ProcessTrace> traces{rank.read()};
  EXPECT_THAT(summaryOf(joinTraces(std::move(traces))), HasSubstr("0 ns     2 ms   1.9 ms   (1)"));
}

TEST(TraceSummary, SaysWhatAProcessWasAboutWhenItEnded) {
  Rank rank(0, 2);
  Record call = Rank::record(Kind::Call, 1000 * kMilli, 1000 * kMilli);
  call.flags = trace::kOpen;
  call.number = 9;
  call.text = rank.file().text("ncclCommInitRank");
  rank.file().write(call);
  std::vector<ProcessTrace> traces{rank.read()};
  const std::string text = summaryOf(joinTraces(std::move(traces)));
  EXPECT_THAT(text, HasSubstr("it did not end in order, or still runs"));
  EXPECT_THAT(text, HasSubstr("not ended: ncclCommInitRank"));
}

TEST(TraceJob, PutsHostsOnOneClock) {
  Rank here(0, 2, 1), there(1, 2, 2);
  here.reduce(1, 1000 * kMilli, 1010 * kMilli);
  // Its clock is 700 ms ahead; it comes 3 ms after us.
  there.clock(1, -700 * static_cast<std::int64_t>(kMilli), 2000);
  there.clock(1, -650 * static_cast<std::int64_t>(kMilli), 90 * kMilli);
  there.reduce(1, 1703 * kMilli, 1710 * kMilli);
  std::vector<ProcessTrace> traces{here.read(), there.read()};
  const Job job = joinTraces(std::move(traces));
  ASSERT_EQ(job.operations.size(), 1u);
  EXPECT_EQ(job.operations[0].lateness(), 3 * kMilli);
  EXPECT_THAT(summaryOf(job), HasSubstr("clock of host host2: brought to that of host host1 within 2 us"));
}

TEST(TraceJob, SaysWhereNothingJoinsTwoClocks) {
  Rank here(0, 2, 1), there(1, 2, 2);
  here.reduce(1, 1000 * kMilli, 0);
  there.reduce(1, 1000 * kMilli, 0);
  std::vector<ProcessTrace> traces{here.read(), there.read()};
  EXPECT_THAT(summaryOf(joinTraces(std::move(traces))), HasSubstr("no measurement joins it with host host1"));
}

TEST(TraceReader, RefusesWhatIsNoTraceAndLaterVersions) {
  std::string why;
  EXPECT_FALSE(parseTrace({}, why));
  EXPECT_THAT(why, HasSubstr("no trace of tutti"));
  Rank rank(0, 1);
  std::vector<std::byte> bytes = rank.bytes();
  const std::uint32_t later = trace::kVersion + 1;
  std::memcpy(bytes.data() + offsetof(trace::FileHeader, version), &later, sizeof(later));
  EXPECT_FALSE(parseTrace(bytes, why));
  EXPECT_THAT(why, HasSubstr("version 2 of the format"));
}

TEST(TraceReader, ReadsACutFileAsFarAsItGoes) {
  Rank rank(0, 1);
  for (std::uint32_t n = 1; n <= 100; ++n) rank.reduce(n, 1000 * kMilli + n, 2000 * kMilli);
  const std::vector<std::byte> bytes = rank.bytes();
  trace::FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::string why;
  const auto cut = parseTrace(std::span(bytes).first(header.ringOffset + 10 * sizeof(Record) + 5), why);
  ASSERT_TRUE(cut) << why;
  EXPECT_EQ(cut->records.size(), 10u);
  EXPECT_THAT(cut->remarks, testing::Contains(HasSubstr("it is cut off: 10 of")));
}

TEST(TraceReader, SurvivesEveryCutAndManyWrongBytes) {
  Rank rank(0, 2);
  for (std::uint32_t n = 1; n <= 20; ++n) rank.reduce(n, 1000 * kMilli + n, 2000 * kMilli);
  rank.step(Kind::NetSend, 1, 0, 1001 * kMilli, 1002 * kMilli);
  rank.clock(5, 1, 1);
  const std::vector<std::byte> whole = rank.bytes();
  trace::FileHeader header;
  std::memcpy(&header, whole.data(), sizeof(header));
  const auto digest = [](std::span<const std::byte> bytes) {
    std::string why;
    auto trace = parseTrace(bytes, why);
    if (!trace) return why.size();
    std::vector<ProcessTrace> traces{std::move(*trace)};
    const Job job = joinTraces(std::move(traces));
    std::size_t size = summaryOf(job).size() + perfettoOf(job).size();
    for (const Operation& operation : job.operations) size += svgOf(job, operation).size();
    return size;
  };
  const std::size_t inNotes = header.notesOffset + header.notesUsed;
  for (std::size_t cut = 0; cut < sizeof(header); ++cut) EXPECT_GT(digest(std::span(whole).first(cut)), 0u);
  for (std::size_t cut = header.notesOffset; cut < inNotes; ++cut) EXPECT_GT(digest(std::span(whole).first(cut)), 0u);
  std::mt19937 random(1);
  const std::size_t ends[] = {sizeof(header), inNotes, header.ringOffset + 70 * sizeof(Record)};
  const std::size_t begins[] = {8, header.notesOffset, header.ringOffset};
  for (int round = 0; round < 600; ++round) {
    std::vector<std::byte> broken(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(ends[2]));
    for (int changes = 0; changes < 4; ++changes) {
      const auto part = static_cast<std::size_t>(round % 3);
      const std::size_t place = begins[part] + random() % (ends[part] - begins[part]);
      broken[place] = static_cast<std::byte>(random());
    }
    EXPECT_GT(digest(broken), 0u);
  }
}

TEST(TraceSvg, DrawsOneOperationByItsName) {
  const Job job = joinTraces(lateRankOfThree());
  EXPECT_EQ(findOperation(job, "AllReduce:11"), nullptr);
  EXPECT_EQ(findOperation(job, "x"), nullptr);
  const Operation* const found = findOperation(job, "AllReduce:4");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found, findOperation(job, "4"));
  const std::string picture = svgOf(job, *found);
  EXPECT_THAT(picture, HasSubstr("rank 2, last"));
  EXPECT_THAT(picture, HasSubstr("waits for the last rank, 5 ms"));
}

TEST(TraceSummary, WritesTimesAndBytesAsPeopleDo) {
  EXPECT_EQ(timeText(12), "12 ns");
  EXPECT_EQ(timeText(1250), "1.25 us");
  EXPECT_EQ(timeText(2.5e9), "2.5 s");
  EXPECT_EQ(bytesText(65536), "64 KB");
  EXPECT_EQ(bytesText(1000), "1000 bytes");
}

}  // namespace
}  // namespace tutti::tool
