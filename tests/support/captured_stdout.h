// What a test prints.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace tutti::test {

/// Standard output in a file for its own lifetime.
class CapturedStdout {
 public:
  CapturedStdout() {
    std::fflush(stdout);
    const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    EXPECT_GE(::dup2(file, STDOUT_FILENO), 0);
    ::close(file);
  }
  ~CapturedStdout() {
    std::fflush(stdout);
    ::dup2(before_, STDOUT_FILENO);
    ::close(before_);
    ::unlink(path_.c_str());
  }
  std::string text() const {
    std::fflush(stdout);
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  std::string path_ = testing::TempDir() + "tutti-stdout-" + std::to_string(::getpid());
  int before_ = ::dup(STDOUT_FILENO);
};

}  // namespace tutti::test
