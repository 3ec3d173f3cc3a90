#include "ras/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ras/job.h"

namespace tutti::ras::test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RasService, AnswersAClientOfAProcessThatIsAlone) {
  FakeJob job(1);
  const std::string text = ask(job[0], "client protocol 2\r\nverbose status\r\n");
  EXPECT_THAT(text, testing::StartsWith("SERVER PROTOCOL 2\nNCCL version 2.32.3 compiled with CUDA 13.0\n"));
  EXPECT_THAT(text, testing::ContainsRegex("Communicators... .0.[0-9][0-9]s.\n=============\n"));
  EXPECT_THAT(text, HasSubstr("RUNNING      OK\n"));
}

TEST(RasService, TellsOfAllRanksWhoeverIsAsked) {
  FakeJob job(5);
  for (const auto& process : job.processes) {
    const nlohmann::json report = askJson(*process);
    EXPECT_EQ(report["communicators"][0]["ranks_count"], 5) << report.dump(1);
    EXPECT_EQ(report["communicators"][0]["missing_ranks_count"], 0);
    EXPECT_EQ(inState(report, "answered"), 5U);
  }
}

TEST(RasService, SeesManyProcesses) {
  FakeJob job(40, 10);
  EXPECT_EQ(askJson(job[17])["communicators"][0]["ranks_count"], 40);
}

TEST(RasService, FindsProcessesThatItHasMetThroughOthersAlone) {
  FakeProcess a(0, 0.1);
  FakeProcess b(1, 0.1);
  FakeProcess c(2, 0.1);
  c.listings.push_back(c.registry.add({{5, 5, 5}, 1, 0, 0, 0}, {{c.self.facts.id, 0, 0}}, [] { return RankState{}; }));
  a.service->add({b.self});
  b.service->add({c.self});
  EXPECT_TRUE(becomes(a, [](const nlohmann::json& report) { return inState(report, "answered") == 3; }));
  EXPECT_EQ(askJson(a)["communicators"][0]["ranks_count"], 1);
  EXPECT_TRUE(becomes(c, [](const nlohmann::json& report) { return inState(report, "answered") == 3; }));
}

TEST(RasService, TellsWhoBelongsToACommunicatorWithoutBeingAMember) {
  FakeJob job(2, 10);
  FakeProcess& first = job[0];
  FakeProcess other(2, 10);
  // Rank 1 is of the process that is asked, and does not list it.
  const std::vector<CommMember> members{{first.self.facts.id, 0, 0}, {other.self.facts.id, 3, 4}};
  first.listings.push_back(first.registry.add({{6, 6, 6}, 2, 0, 0, 0}, members, [] { return RankState{}; }));
  other.service->add({first.self});
  const nlohmann::json comm = askJson(other)["communicators"];
  const auto found = std::find_if(comm.begin(), comm.end(), [](const auto& one) { return one["hash"] == "0x6"; });
  ASSERT_NE(found, comm.end());
  EXPECT_EQ((*found)["missing_ranks"][0]["nvml_dev"], 4);
  EXPECT_EQ((*found)["missing_ranks"][0]["pid"], 1002);
  EXPECT_THAT(ask(other, "STATUS\n"), HasSubstr("Rank 1 has status NOCOMM -- GPU 3 (NVML 4) managed by process 1002"));
}

TEST(RasService, NamesThoseWhoHaveGivenUpTheirPartByWhoeverIsLeft) {
  FakeJob job(6, 10);
  for (std::size_t n = 0; n < 5; ++n) job[n].listings.clear();
  const nlohmann::json comm = askJson(job[0])["communicators"][0];
  EXPECT_EQ(comm["ranks_count"], 1);
  for (std::size_t n = 0; n < 5; ++n) EXPECT_EQ(comm["missing_ranks"][n]["pid"], 1000 + n);
  const std::string text = ask(job[5], "VERBOSE STATUS\n");
  EXPECT_THAT(text, HasSubstr("RUNNING  MISMATCH\n"));
  EXPECT_THAT(text, HasSubstr("5 ranks have status NOCOMM\n"));
}

TEST(RasService, OfManyRanksSomeTellWhoTheOthersAre) {
  constexpr int kSize = 100;
  FakeProcess holder(0, 10);
  FakeProcess other(1, 10);
  const std::vector<CommMember> members(kSize, CommMember{other.self.facts.id, 3, 4});
  for (const int rank : {31, 64}) {
    auto listing = holder.registry.add({{6, 6, 6}, kSize, rank, 0, 0}, members, [] { return RankState{}; });
    other.service->add({holder.self});
    const nlohmann::json missing = askJson(other)["communicators"][0]["missing_ranks"];
    EXPECT_EQ(missing[0]["pid"], rank == 64 ? 1001 : 0);
  }
}

TEST(RasService, WhoLeavesIsNotDead) {
  FakeJob job(4, 0.02);  // a second and a bit is death
  Client monitor(job[0].client);
  monitor.say("MONITOR\n");
  EXPECT_THAT(monitor.hearUntil("OK\n"), HasSubstr("OK\n"));
  job[2].service->stop(Deadline::in(std::chrono::seconds(20)));
  EXPECT_THAT(monitor.hearUntil("PEER_LEFT"), HasSubstr("PEER_LEFT"));
  EXPECT_TRUE(becomes(job[1], [](const nlohmann::json& report) { return inState(report, "left") == 1; }));
  EXPECT_THAT(monitor.hearUntil("PEER_DEAD", std::chrono::seconds(2)), Not(HasSubstr("PEER_DEAD")));
  EXPECT_EQ(inState(askJson(job[3]), "left"), 1U);
}

TEST(RasService, AllMayLeaveAtOnceAndTellWhoStays) {
  FakeJob job(8, 10);
  EXPECT_TRUE(becomes(job[7], [](const nlohmann::json& report) { return inState(report, "answered") == 8; }));
  std::vector<std::thread> leaving;
  for (std::size_t n = 0; n < 7; ++n) {
    leaving.emplace_back([&job, n] { job[n].service->stop(Deadline::in(std::chrono::seconds(20))); });
  }
  for (std::thread& thread : leaving) thread.join();
  EXPECT_TRUE(becomes(job[7], [](const nlohmann::json& report) { return inState(report, "left") == 7; }));
  const auto start = SteadyClock::now();
  job[7].service->stop(Deadline::in(std::chrono::seconds(20)));
  EXPECT_LT(secondsSince(start), 10);  // there is nobody to tell
}

TEST(RasService, ServesManyClientsAtOnce) {
  FakeJob job(3);
  std::vector<std::unique_ptr<Client>> clients;
  for (int n = 0; n < 100; ++n) clients.push_back(std::make_unique<Client>(job[1].client));
  for (const auto& client : clients) client->say("STATUS\n");
  for (const auto& client : clients) EXPECT_THAT(client->hearAll(), HasSubstr("RUNNING      OK\n"));
}

TEST(RasService, GivesAClientThatHasClosedItsHalfTheReport) {
  FakeJob job(3);
  Client client(job[0].client);
  client.say("STATUS\nand something behind it\n");
  client.finish();
  EXPECT_THAT(client.hearAll(), HasSubstr("RUNNING      OK\n"));
}

TEST(RasService, NobodyNeedsADoorForClients) {
  auto network = loopbackListener();
  const Member self = freshMember(network.address(), 0);
  Registry registry;
  ServiceOptions options{{}, std::move(network), self, Timers::scaled(1), {}};
  auto service = Service::start(std::move(options), registry);
  ASSERT_TRUE(service.ok());
  FakeProcess other(1, 1);
  other.service->add({self});
  EXPECT_EQ(inState(askJson(other), "answered"), 2U);
}

}  // namespace
}  // namespace tutti::ras::test
