#include "ras/client/commands.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "ras/report/event.h"

namespace tutti::ras {
namespace {

std::string wrong(std::string_view line) {
  const Command command = parseCommand(line);
  const auto* const reply = std::get_if<WrongCommand>(&command);
  return reply != nullptr ? reply->reply : "no error";
}

TEST(ParseCommand, KnowsWordsInAnyCase) {
  EXPECT_FALSE(std::get<StatusCommand>(parseCommand("StaTus")).verbose);
  EXPECT_TRUE(std::get<StatusCommand>(parseCommand("verbose STATUS")).verbose);
  EXPECT_TRUE(std::get<FormatCommand>(parseCommand("set format JSON")).json);
  EXPECT_FALSE(std::get<FormatCommand>(parseCommand("SET FORMAT text")).json);
  EXPECT_EQ(std::get<TimeoutCommand>(parseCommand("timeout 17")).seconds, 17U);
}

TEST(ParseCommand, TakesAnyNumberOfProtocol) {
  EXPECT_TRUE(std::holds_alternative<HandshakeCommand>(parseCommand("client protocol 1")));
  EXPECT_TRUE(std::holds_alternative<HandshakeCommand>(parseCommand("CLIENT PROTOCOL x")));
}

TEST(ParseCommand, ChoosesGroupsOfEvents) {
  const auto groups = [](std::string_view line) { return std::get<MonitorCommand>(parseCommand(line)).groups; };
  EXPECT_EQ(groups("MONITOR"), kLifecycle);
  EXPECT_EQ(groups("MONITOR trace"), kTrace);
  EXPECT_EQ(groups("monitor Lifecycle,TRACE"), kLifecycle | kTrace);
  EXPECT_EQ(groups("MONITOR all"), kLifecycle | kTrace);
}

TEST(ParseCommand, QuotesWhatIsWrong) {
  EXPECT_EQ(wrong("TIMEOUT -1"), "ERROR: Invalid timeout value -1\n");
  EXPECT_EQ(wrong("TIMEOUT 5s"), "ERROR: Invalid timeout value 5s\n");
  EXPECT_EQ(wrong("TIMEOUT 99999999999"), "ERROR: Invalid timeout value 99999999999\n");
  EXPECT_EQ(wrong("SET FORMAT xml"), "ERROR: Invalid format xml\n");
  EXPECT_EQ(wrong("MONITOR trace,x"), "ERROR: Invalid event group 'x'\n");
  EXPECT_EQ(wrong("STATUS "), "ERROR: Unknown command STATUS \n");
  EXPECT_EQ(wrong("VERBOSE  STATUS"), "ERROR: Unknown command VERBOSE  STATUS\n");
  EXPECT_EQ(wrong(""), "ERROR: Unknown command \n");
}

TEST(ParseCommand, OutlivesRandomBytes) {
  std::mt19937 random(7);
  const std::string_view words[] = {"STATUS", "TIMEOUT ", "MONITOR ", "SET FORMAT ", ",", "VERBOSE ", "\0\xff"};
  for (int i = 0; i < 20000; ++i) {
    std::string line;
    for (std::uint32_t n = random() % 4; n > 0; --n) line += words[random() % std::size(words)];
    for (std::uint32_t n = random() % 40; n > 0; --n) line += static_cast<char>(random() % 256);
    static_cast<void>(parseCommand(line));
  }
}

TEST(LineReader, CutsAtBothKindsOfEnds) {
  LineReader lines;
  lines.add("one\r\ntwo\nthr");
  EXPECT_EQ(lines.next(), "one");
  EXPECT_EQ(lines.next(), "two");
  EXPECT_EQ(lines.next(), std::nullopt);
  lines.add("ee\n");
  EXPECT_EQ(lines.next(), "three");
}

TEST(LineReader, NoticesLinesThatAreTooLong) {
  LineReader lines;
  lines.add(std::string(LineReader::kLongest, 'x'));
  EXPECT_FALSE(lines.tooLong());
  lines.add("x");
  EXPECT_TRUE(lines.tooLong());
  LineReader whole;
  whole.add(std::string(LineReader::kLongest + 1, 'x') + "\n");
  EXPECT_EQ(whole.next(), std::nullopt);
  EXPECT_TRUE(whole.tooLong());
}

}  // namespace
}  // namespace tutti::ras
