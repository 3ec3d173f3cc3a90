#include "ras/client/session.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include "ras/report/sample.h"

namespace tutti::ras {
namespace {

/// A session and the client's end of its connection.
class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    client_ = Fd(ends[0]);
    session_ = std::make_unique<Session>(Socket(Fd(ends[1]), {}), milliseconds(5000));
  }
  void say(std::string_view text) {
    EXPECT_EQ(::send(client_.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    session_->receive();
  }
  std::string hear() {
    std::string all;
    std::array<char, 4096> piece;
    for (ssize_t got = 0; (got = ::recv(client_.get(), piece.data(), piece.size(), 0)) > 0;) {
      all.append(piece.data(), static_cast<std::size_t>(got));
    }
    return all;
  }
  void happen() { session_->happened(event_); }

  const Event event_{EventKind::PeerNew, sampleProcess(0, 0, 0).facts, "", std::chrono::system_clock::now()};
  Fd client_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionTest, AnswersSeveralCommandsAtOnceAndGoesOnAfterMistakes) {
  say("CLIENT PROTOCOL 2\nwhat\nTIMEOUT 3\nset format json\nSTATUS\n");
  EXPECT_EQ(hear(), "SERVER PROTOCOL 2\nERROR: Unknown command what\nOK\nOK\n");
  ASSERT_NE(session_->request(), nullptr);
  EXPECT_TRUE(session_->request()->json);
  EXPECT_LE(session_->request()->deadline.remaining(), milliseconds(3000));
}

TEST_F(SessionTest, WaitsForEverOnlyWhenAsked) {
  say("TIMEOUT 0\nSTATUS\n");
  EXPECT_TRUE(session_->request()->deadline.isNever());
}

TEST_F(SessionTest, ReadsNothingWhileAReportIsMade) {
  say("STATUS\nCLIENT PROTOCOL 2\n");
  EXPECT_FALSE(session_->wantsRead());
  session_->report(std::make_shared<const std::string>("report"));
  EXPECT_EQ(hear(), "report");
}

TEST_F(SessionTest, GivesAReportThatDoesNotGoOutAtOnceOnceAndWhole) {
  say("STATUS\n");
  session_->say("first part\n");
  std::string report;
  for (int i = 0; i < 400'000; ++i) report += std::to_string(i);
  session_->report(std::make_shared<const std::string>(report));
  std::string heard = hear();
  EXPECT_LT(heard.size(), report.size()) << "all of it fits into the system's buffers";
  while (session_->wantsWrite() && heard.size() < 2 * report.size()) {
    session_->flush();
    heard += hear();
  }
  EXPECT_TRUE(heard == "first part\n" + report) << heard.size() << " bytes of " << report.size();
}

TEST_F(SessionTest, IsClosedForALineThatIsTooLong) {
  say(std::string(3000, 'x'));
  EXPECT_TRUE(session_->ended());
}

TEST_F(SessionTest, AnswersAllCommandsOfAClientThatSaysNothingMore) {
  std::size_t commands = 0;
  for (; !session_->wantsWrite(); ++commands) say("CLIENT PROTOCOL 2\n");
  ::shutdown(client_.get(), SHUT_WR);
  session_->receive();
  std::string heard = hear();
  while (!session_->ended() && (session_->wantsWrite() || session_->wantsRead())) {
    if (session_->wantsWrite()) session_->flush();
    if (session_->wantsRead()) session_->receive();
    heard += hear();
  }
  EXPECT_EQ(heard.size(), commands * std::string("SERVER PROTOCOL 2\n").size());
  EXPECT_TRUE(session_->ended());
}

TEST_F(SessionTest, TellsEventsOnlyToWhomWantsThem) {
  happen();
  EXPECT_EQ(hear(), "");
  say("MONITOR trace\n");
  happen();
  EXPECT_EQ(hear(), "OK\n");
  say("MONITOR lifecycle\n");
  happen();
  EXPECT_NE(hear().find("PEER_NEW"), std::string::npos);
}

TEST_F(SessionTest, TellsEventsToAClientThatSaysNothingMore) {
  say("MONITOR\n");
  ::shutdown(client_.get(), SHUT_WR);
  session_->receive();
  happen();
  EXPECT_FALSE(session_->ended());
  EXPECT_NE(hear().find("PEER_NEW"), std::string::npos);
}

TEST_F(SessionTest, KeepsAClientThatNeverHasAllButKeepsUp) {
  say("MONITOR\n");
  std::size_t heard = 0;
  std::size_t owed = 0;  // of events that make up for what was heard
  std::array<char, 4096> piece;
  for (int i = 0; i < 5000; ++i) happen();  // more than the system keeps
  while (heard < 4 * Session::kMostPending && !session_->ended()) {
    const ssize_t got = ::recv(client_.get(), piece.data(), piece.size(), 0);
    ASSERT_GT(got, 0) << heard;
    heard += static_cast<std::size_t>(got);
    for (owed += static_cast<std::size_t>(got); owed >= eventText(event_).size(); owed -= eventText(event_).size()) {
      happen();
    }
    session_->flush();
  }
  EXPECT_FALSE(session_->ended());
}

TEST_F(SessionTest, DropsAClientThatDoesNotKeepUp) {
  say("MONITOR\n");
  int events = 0;
  while (!session_->ended() && events < 1'000'000) {
    happen();
    ++events;
  }
  EXPECT_TRUE(session_->ended());
}

}  // namespace
}  // namespace tutti::ras
