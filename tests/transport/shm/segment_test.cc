// Memory that processes share without a file system.
#include "transport/shm/segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "support/log_capture.h"

namespace tutti::test {
namespace {

using shm::Segment;

constexpr std::size_t kBytes = 10'000;
constexpr const char* kAbout = "SHM channel 3, rank 0 with rank 1";

/// A limit of the process for as long as this lives.
class Limit {
 public:
  Limit(__rlimit_resource which, rlim_t value) : which_(which) {
    EXPECT_EQ(::getrlimit(which, &before_), 0);
    const rlimit limit{value, before_.rlim_max};
    EXPECT_EQ(::setrlimit(which, &limit), 0);
  }
  Limit(const Limit&) = delete;
  ~Limit() { ::setrlimit(which_, &before_); }

 private:
  __rlimit_resource which_;
  rlimit before_{};
};

TEST(ShmSegment, IsWholePagesOfZeros) {
  const auto segment = shm::Segment::create(kBytes, -1, kAbout);
  ASSERT_TRUE(segment.ok());
  const auto memory = segment.value().memory();
  EXPECT_EQ(memory.size() % 4096, 0U);
  EXPECT_GE(memory.size(), kBytes);
  EXPECT_TRUE(std::all_of(memory.begin(), memory.end(), [](std::byte b) { return b == std::byte{}; }));
}

TEST(ShmSegment, IsOneMemoryForAllWhoMapIt) {
  auto made = shm::Segment::create(kBytes, -1, kAbout);
  const auto adopted = shm::Segment::adopt(made.value().takeDescriptor(), kBytes, kAbout);
  ASSERT_TRUE(adopted.ok());
  EXPECT_NE(made.value().memory().data(), adopted.value().memory().data());
  made.value().memory()[kBytes - 1] = std::byte{42};
  EXPECT_EQ(adopted.value().memory()[kBytes - 1], std::byte{42});
}

TEST(ShmSegment, CannotBeTakenAwayByWhoHasTheDescriptor) {
  auto segment = shm::Segment::create(kBytes, -1, kAbout);
  const Fd fd = segment.value().takeDescriptor();
  EXPECT_EQ(::ftruncate(fd.get(), 0), -1);
  EXPECT_EQ(errno, EPERM);
  segment.value().memory()[0] = std::byte{1};
}

TEST(ShmSegment, IsThereInFullBeforeItIsTouched) {
  auto segment = shm::Segment::create(1 << 20, -1, kAbout);
  const Fd fd = segment.value().takeDescriptor();
  struct stat facts {};
  ASSERT_EQ(::fstat(fd.get(), &facts), 0);
  EXPECT_GE(facts.st_blocks * 512, 1 << 20);
}

TEST(ShmSegment, LiesOutsideDevShm) {
  auto segment = shm::Segment::create(kBytes, -1, kAbout);
  const Fd fd = segment.value().takeDescriptor();
  struct stat own {};
  struct stat devShm {};
  ASSERT_EQ(::fstat(fd.get(), &own), 0);
  if (::stat("/dev/shm", &devShm) != 0) GTEST_SKIP() << "there is no /dev/shm";
  EXPECT_NE(own.st_dev, devShm.st_dev) << "its size limit would be ours";
}

TEST(ShmSegment, NodeThatDoesNotExistIsNoError) {
  for (const int node : {0, 63, 1023, 5000}) EXPECT_TRUE(shm::Segment::create(kBytes, node, kAbout).ok()) << node;
}

TEST(ShmSegment, MemoryThatCouldShrinkIsRefused) {
  Fd unsealed(::memfd_create("tutti-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 12288), 0);
  expectLog("SHM channel 3, rank 0 with rank 1: the peer's descriptor is not sealed memory of 12288 bytes");
  EXPECT_EQ(shm::Segment::adopt(std::move(unsealed), kBytes, kAbout).status().code(), ncclInternalError);
}

TEST(ShmSegment, MemoryOfAnotherSizeIsRefused) {
  auto segment = shm::Segment::create(kBytes, -1, kAbout);
  expectLog("is not sealed memory of 20480 bytes, but has 12288 bytes");
  EXPECT_EQ(shm::Segment::adopt(segment.value().takeDescriptor(), 2 * kBytes, kAbout).status().code(),
            ncclInternalError);
}

TEST(ShmSegment, WhatIsNoMemoryIsRefused) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Fd other(ends[1]);
  expectLog("is not sealed memory");
  EXPECT_FALSE(shm::Segment::adopt(Fd(ends[0]), kBytes, kAbout).ok());
}

TEST(ShmSegment, DescriptorLimitIsNamedWithItsRemedy) {
  const Limit limit(RLIMIT_NOFILE, 0);
  expectLog(
      "SHM channel 3, rank 0 with rank 1: memfd_create for 12288 bytes of shared host memory failed: Too many open "
      "files");
  EXPECT_EQ(shm::Segment::create(kBytes, -1, kAbout).status().code(), ncclSystemError);
  EXPECT_NE(capturedText().find("ulimit -n"), std::string::npos);
  EXPECT_NE(capturedText().find("NCCL_SHM_DISABLE=1"), std::string::npos);
}

TEST(ShmSegment, FileSizeLimitIsAnErrorAndNoSignal) {
  const Limit limit(RLIMIT_FSIZE, 4096);
  expectLog("Raise the file size limit (ulimit -f)");
  EXPECT_EQ(shm::Segment::create(kBytes, -1, kAbout).status().code(), ncclSystemError);
}

TEST(ShmSegment, MoreThanTheHostHasIsAnErrorAndNoSignal) {
  expectLog("bytes of shared host memory failed");
  EXPECT_EQ(shm::Segment::create(std::size_t{1} << 62, -1, kAbout).status().code(), ncclSystemError);
}

}  // namespace
}  // namespace tutti::test
