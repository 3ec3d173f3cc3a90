// The file of a trace as it lies on the disk.
#include "trace/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "trace/on.h"

namespace tutti::trace {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kBytes = 1U << 20U;

std::string placeFor(const char* name) {
  return testing::TempDir() + "tutti-trace-" + std::to_string(::getpid()) + name;
}

std::unique_ptr<TraceFile> make(const std::string& path) {
  std::string why;
  auto file = TraceFile::create(path, kBytes, {"a-host", 7, 42, "tutti"}, why);
  EXPECT_NE(file, nullptr) << why;
  return file;
}

std::vector<char> bytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

FileHeader headerOf(const std::vector<char>& bytes) {
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

std::vector<Record> recordsOf(const std::vector<char>& bytes) {
  const FileHeader header = headerOf(bytes);
  std::vector<Record> records(header.ringRecords);
  std::memcpy(records.data(), bytes.data() + header.ringOffset, records.size() * sizeof(Record));
  return records;
}

Record callWith(std::uint32_t number) {
  Record record{};
  record.kind = Kind::Call;
  record.begin = record.end = now();
  record.number = number;
  record.a = record.b = record.c = number;
  return record;
}

TEST(TraceFile, HasItsHeaderAtOnceAndItsWholeSize) {
  const std::string path = placeFor("header");
  const auto file = make(path);
  const std::vector<char> bytes = bytesOf(path);
  ASSERT_EQ(bytes.size(), kBytes);
  const FileHeader header = headerOf(bytes);
  EXPECT_EQ(header.magic, kMagic);
  EXPECT_EQ(header.version, kVersion);
  EXPECT_EQ(header.pid, 42u);
  EXPECT_EQ(header.hostHash, 7u);
  EXPECT_STREQ(header.host.data(), "a-host");
  EXPECT_EQ(header.closed, 0u);
  EXPECT_NE(header.openedMonotonic, 0u);
  ::unlink(path.c_str());
}

TEST(TraceFile, KeepsTheNewestRecordsWhenItIsFull) {
  const std::string path = placeFor("full");
  const auto file = make(path);
  const std::uint64_t room = headerOf(bytesOf(path)).ringRecords;
  for (std::uint64_t i = 1; i <= room + 10; ++i) file->write(callWith(static_cast<std::uint32_t>(i)));
  const std::vector<char> bytes = bytesOf(path);
  EXPECT_EQ(headerOf(bytes).next, room + 10);
  const std::vector<Record> records = recordsOf(bytes);
  for (std::uint64_t i = 0; i < room; ++i) {
    const std::uint64_t place = i < 10 ? i + room : i;
    EXPECT_EQ(records[i].sequence, place + 1);
    EXPECT_EQ(records[i].number, place + 1);
  }
  ::unlink(path.c_str());
}

TEST(TraceFile, HasEveryRecordOfManyThreadsWhole) {
  constexpr std::uint32_t kThreads = 4, kEach = 2000;
  const std::string path = placeFor("threads");
  const auto file = make(path);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < kEach; ++i) {
        file->write(callWith(t * kEach + i));
        if (i % 100 == 0) file->text("text " + std::to_string(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<bool> seen(kThreads * kEach);
  for (const Record& record : recordsOf(bytesOf(path))) {
    if (record.sequence == 0) continue;
    ASSERT_LT(record.number, seen.size());
    EXPECT_EQ(record.a, record.number);
    EXPECT_EQ(record.c, record.number);
    seen[record.number] = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), kThreads * kEach);
  ::unlink(path.c_str());
}

TEST(TraceFile, KeepsAllThatAKilledProcessHasWritten) {
  const std::string path = placeFor("killed");
  const pid_t child = ::fork();
  if (child == 0) {
    const auto file = make(path);
    for (std::uint32_t i = 1; i <= 100; ++i) file->write(callWith(i));
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const std::vector<Record> records = recordsOf(bytesOf(path));
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(records[i].sequence, i + 1);
  ::unlink(path.c_str());
}

TEST(TraceFile, TakesNotesUntilThereIsNoRoom) {
  const std::string path = placeFor("notes");
  const auto file = make(path);
  const std::string text(1000, 'x');
  std::uint32_t taken = 0;
  while (file->text(text) != 0) ++taken;
  const FileHeader header = headerOf(bytesOf(path));
  EXPECT_EQ(taken, header.notesBytes / (sizeof(TextNote) + text.size()));
  EXPECT_LE(header.notesUsed, header.notesBytes);
  ::unlink(path.c_str());
}

TEST(TraceFile, IsRefusedWhereAnotherProcessWritesIt) {
  const std::string path = placeFor("twice");
  const auto file = make(path);
  std::string why;
  EXPECT_EQ(TraceFile::create(path, kBytes, {}, why), nullptr);
  EXPECT_THAT(why, HasSubstr("another process is writing it; put %p"));
  ::unlink(path.c_str());
}

TEST(TraceFile, SaysWhyItCannotBeMade) {
  std::string why;
  EXPECT_EQ(TraceFile::create("/no/such/folder/x", kBytes, {}, why), nullptr);
  EXPECT_THAT(why, HasSubstr("its folder does not exist"));
  EXPECT_EQ(TraceFile::create(testing::TempDir(), kBytes, {}, why), nullptr);
  EXPECT_THAT(why, HasSubstr("it is a folder"));
  EXPECT_EQ(TraceFile::create("/dev/null", kBytes, {}, why), nullptr);
  EXPECT_THAT(why, HasSubstr("no regular file"));
  const std::string path = placeFor("huge");
  EXPECT_EQ(TraceFile::create(path, std::uint64_t{1} << 50U, {}, why), nullptr);
  EXPECT_THAT(why, HasSubstr("TUTTI_TRACE_MB"));
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace tutti::trace
