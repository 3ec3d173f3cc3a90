#include "ras/report/text_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ras/report/event.h"
#include "ras/report/sample.h"

namespace tutti::ras {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t indexOf(Func func) {
  return static_cast<std::size_t>(func);
}

TEST(TextReport, GivesOneRowForNodesThatAreAlike) {
  EXPECT_EQ(reportBegin(kSampleLibrary, sampleJob(2, 4).processes),
            "NCCL version 2.32.3 compiled with CUDA 13.0\n"
            "CUDA runtime version 13000, driver version 13010\n"
            "\n"
            "Job summary\n"
            "===========\n"
            "\n"
            "  Nodes  Processes         GPUs  Processes     GPUs\n"
            "(total)   per node  per process    (total)  (total)\n"
            "      2          4            1          8        8\n"
            "\n"
            "Communicators...");
}

TEST(TextReport, SaysNoMoreThanTheTableWhereAllIsWell) {
  EXPECT_EQ(reportRest(sampleJob(2, 4), false),
            " (0.00s)\n"
            "=============\n"
            "\n"
            "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
            "    #  in group  per comm  per node  per comm  in group\n"
            "    0         1         2         4         8         8   RUNNING      OK\n"
            "\n");
}

TEST(TextReport, ShowsADistributionAndWhoDiffersElsewhere) {
  Survey survey = sampleJob(3, 2);
  survey.add(sampleProcess(6, 3, 0));
  const std::string text = reportBegin(kSampleLibrary, survey.processes);
  EXPECT_THAT(text, HasSubstr("      1          1            1\n      3          2            1\n"));
  EXPECT_THAT(text, HasSubstr("(total)    (total)  (total)\n      4          7        7\n"));
  EXPECT_THAT(text, HasSubstr("The outlier node:\n  Node 127.0.0.1 running process 1006\n"));
}

TEST(TextReport, LeavesOutProcessesThatHaveLeft) {
  Survey survey = sampleJob(1, 3);
  survey.processes.back().facts.state = ProcessState::Left;
  EXPECT_THAT(reportBegin(kSampleLibrary, survey.processes), HasSubstr("      1          2            1          2"));
  EXPECT_THAT(reportRest(survey, false), Not(HasSubstr("DEAD")));
}

TEST(TextReport, HasNoTableWithoutCommunicators) {
  Survey survey = sampleJob(1, 1);
  survey.comms.clear();
  EXPECT_THAT(reportRest(survey, false), HasSubstr("No communicator data collected!\n"));
}

TEST(TextReport, PutsAlikeCommunicatorsInOneGroupAndLargeGroupsFirst) {
  Survey survey = sampleJob(2, 2);
  for (std::uint64_t i = 0; i < 3; ++i) {
    CommFacts pair = survey.comms.front();
    pair.key.hash = i;
    pair.size = 2;
    pair.ranks.resize(2);
    survey.comms.push_back(std::move(pair));
  }
  EXPECT_THAT(reportRest(survey, false),
              HasSubstr("    0         3         1         2         2         6   RUNNING      OK\n"
                        "    1         1         2         2         4         4   RUNNING      OK\n"));
}

TEST(TextReport, NamesMissingProcessesAndRanks) {
  Survey survey = sampleJob(1, 4);
  loseRank(survey, 2);
  survey.timeouts = 1;
  const std::string text = reportRest(survey, false);
  EXPECT_THAT(text, HasSubstr("   RUNNING  INCOMPLETE\n\nErrors\n======\n\nINCOMPLETE\n"
                              "  Missing communicator data from 1 job process\n"
                              "  Process 1002 on node 127.0.0.1 managing GPU 2\n\n"
                              "#0-0 (cf264af53edbe986) INCOMPLETE\n"
                              "  Missing communicator data from 1 rank\n"
                              "  Rank 2 -- GPU 2 managed by process 1002 on node 127.0.0.1\n\n"));
  EXPECT_THAT(text, HasSubstr("Warnings\n========\n\nTIMEOUT\n"
                              "  Encountered 1 communication timeout while gathering communicator data\n"));
}

TEST(TextReport, NamesTheDead) {
  Survey survey = sampleJob(1, 4);
  loseRank(survey, 3);
  loseRank(survey, 2);
  survey.processes[2].facts.state = survey.processes[3].facts.state = ProcessState::Dead;
  EXPECT_THAT(reportRest(survey, false), HasSubstr("DEAD\n  2 job processes are considered dead (unreachable via the "
                                                   "RAS network)\n  Process 1002 on node"));
}

TEST(TextReport, SaysWhereNothingIsKnownOfAProcess) {
  Survey survey = sampleJob(1, 2);
  survey.comms.front().ranks.pop_back();
  survey.comms.front().absent.push_back({.rank = 1});
  EXPECT_THAT(reportRest(survey, false), HasSubstr("  Rank 1 -- [process information not found]\n"));
}

TEST(TextReport, ShowsNumbersOfNvmlOnlyWhereTheyDiffer) {
  Survey survey = sampleJob(1, 2);
  survey.processes[1].facts.nvmlDevices = 0xc;
  survey.processes[1].facts.cudaDevices = 0x3;
  loseRank(survey, 1);
  survey.comms.front().absent.front().nvmlDevice = 2;
  const std::string text = reportRest(survey, false);
  EXPECT_THAT(text, HasSubstr("  Process 1001 on node 127.0.0.1 managing GPUs 0,1 (NVML 2,3)\n"));
  EXPECT_THAT(text, HasSubstr("  Rank 1 -- GPU 1 (NVML 2) managed by"));
}

TEST(TextReport, NamesErrorsOfInitAndOfRunning) {
  Survey survey = sampleJob(1, 8);
  auto& ranks = survey.comms.front().ranks;
  ranks[1].state.initState = ncclSystemError;
  for (std::size_t r = 2; r < 8; ++r) ranks[r].state.asyncError = ncclRemoteError;
  ranks[0].state.asyncError = ncclInProgress;  // no error
  const std::string text = reportRest(survey, false);
  EXPECT_THAT(text, HasSubstr("#0-0 (cf264af53edbe986) ERROR\n  Initialization error on 1 rank\n"
                              "  Rank 1 reported System error -- GPU 1 managed by"));
  EXPECT_THAT(text, HasSubstr("  Asynchronous errors on 6 ranks\n  6 ranks reported Remote process error\n"));
}

TEST(TextReport, NamesTheRankThatIsBehind) {
  Survey survey = sampleJob(1, 8);
  for (RankFacts& rank : survey.comms.front().ranks) rank.state.counts[indexOf(Func::AllReduce)] = 7;
  survey.comms.front().ranks[5].state.counts[indexOf(Func::AllReduce)] = 6;
  const std::string text = reportRest(survey, false);
  EXPECT_THAT(text, HasSubstr("Warnings\n========\n\n#0-0 (cf264af53edbe986) MISMATCH\n"
                              "  Communicator ranks have different AllReduce operation counts\n"
                              "  7 ranks have launched up to operation 7\n"
                              "  Rank 5 has launched up to operation 6 -- GPU 5 managed by process 1005"));
  EXPECT_THAT(text, Not(HasSubstr("different status")));
}

TEST(TextReport, TellsThatARankHasLaunchedNothing) {
  Survey survey = sampleJob(1, 4);
  for (std::size_t r = 0; r < 3; ++r) survey.comms.front().ranks[r].state.counts[indexOf(Func::Broadcast)] = 1;
  EXPECT_THAT(reportRest(survey, false), HasSubstr("  Rank 3 has not launched any operations -- "));
}

TEST(TextReport, CountsMessagesWithoutComparingThem) {
  Survey survey = sampleJob(1, 2);
  survey.comms.front().ranks[0].state.counts[indexOf(Func::Send)] = 5;
  EXPECT_THAT(reportRest(survey, false), HasSubstr("RUNNING      OK"));
}

TEST(TextReport, ListsSmallGroupsAndMoreOnRequest) {
  Survey survey = sampleJob(1, 16);
  for (std::size_t r = 0; r < 6; ++r) survey.comms.front().ranks[r].state.abortFlag = true;
  const std::string brief = reportRest(survey, false);
  EXPECT_THAT(brief, HasSubstr("  10 ranks have status RUNNING\n  6 ranks have status ABORT\n"));
  EXPECT_THAT(brief, Not(HasSubstr("Rank 0 has status")));
  EXPECT_THAT(reportRest(survey, true), HasSubstr("  Rank 0 has status ABORT -- GPU 0 managed by"));
}

TEST(TextReport, CallsARankWithoutTheCommunicatorNoComm) {
  Survey survey = sampleJob(1, 4);
  loseRank(survey, 3);
  survey.comms.front().absent.front().answered = true;
  survey.processes[3].answered = true;
  const std::string text = reportRest(survey, false);
  EXPECT_THAT(text, HasSubstr("RUNNING  MISMATCH\n"));
  EXPECT_THAT(text, HasSubstr("  Rank 3 has status NOCOMM -- GPU 3 managed by"));
}

TEST(EventText, NamesProcessOrAddress) {
  const auto when = std::chrono::system_clock::from_time_t(0);
  EXPECT_THAT(
      eventText({EventKind::PeerDead, sampleProcess(0, 0, 3).facts, "", when}),
      testing::MatchesRegex("\\[19[0-9-]+ [0-9:]+\\] PEER_DEAD: Process 1000 on node 127.0.0.1 managing GPU 3\n"));
  EXPECT_THAT(eventText({EventKind::PeerConnecting, Address::loopback(AF_INET, 7), "details", when}),
              HasSubstr("PEER_CONNECTING: 127.0.0.1<7> details\n"));
}

}  // namespace
}  // namespace tutti::ras
