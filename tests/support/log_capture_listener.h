// The state behind expectLog(), for the test main alone.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::test {

/// Lines and expectations of the running test. Any thread.
class LogCapture {
 public:
  static LogCapture& instance();
  void begin();
  void add(bool isProblem, std::string_view line);
  void expect(std::string_view part);
  void allow(std::string_view part);
  std::vector<std::string> lines();
  /// What is wrong with the log of the test that ends now; "" if nothing.
  std::string verdict();

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
  std::vector<std::string> problems_;
  std::vector<std::string> expected_;
  std::vector<std::string> allowed_;
};

}  // namespace tutti::test
