// main() of every unit test: GoogleTest, plus a listener that fails tests which log unexpected problems.
#include <memory>

#include <gtest/gtest.h>

#include "base/log.h"
#include "support/log_capture_listener.h"

namespace tutti::test {
namespace {

void sink(void* context, bool isProblem, std::string_view line) {
  static_cast<LogCapture*>(context)->add(isProblem, line);
}

class LogListener : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    LogCapture::instance().begin();
    forgetThreadError();
    setLogSink(&sink, &LogCapture::instance());
  }
  void OnTestEnd(const testing::TestInfo&) override {
    const std::string complaint = LogCapture::instance().verdict();
    setLogSink(nullptr, nullptr);
    if (!complaint.empty()) ADD_FAILURE() << complaint;
  }
};

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  // Listeners hear of the end of a test in reverse order of being added: ours comes before the printer, so that the
  // printer counts a test failed here as failed. GoogleTest owns the listener.
  listeners.Append(std::make_unique<tutti::test::LogListener>().release());
  return RUN_ALL_TESTS();
}
