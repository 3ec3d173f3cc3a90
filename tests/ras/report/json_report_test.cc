#include "ras/report/json_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ras/report/event.h"
#include "ras/report/sample.h"

namespace tutti::ras {
namespace {

using nlohmann::ordered_json;

ordered_json reportOf(const Survey& survey) {
  return ordered_json::parse(jsonReport(kSampleLibrary, survey, std::chrono::system_clock::now()));
}

std::vector<std::string> keysOf(const ordered_json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

using Keys = std::vector<std::string>;

TEST(JsonReport, HasTheKeysThatReadersKnow) {
  Survey survey = sampleJob(1, 2);
  loseRank(survey, 1);
  survey.processes[1].unresponsive = true;
  survey.comms.front().ranks[0].state.lastOp = {4, 64, 9, 1500};
  survey.seconds = 0.0123;
  const ordered_json json = reportOf(survey);
  EXPECT_EQ(keysOf(json), (Keys{"nccl_version", "cuda_runtime_version", "cuda_driver_version", "timestamp",
                                "communicators_count", "communicators", "ras", "library", "processes"}));
  const ordered_json& comm = json["communicators"][0];
  EXPECT_EQ(keysOf(comm), (Keys{"hash", "secondary_hash", "size", "ranks_count", "missing_ranks_count", "ranks",
                                "missing_ranks", "name", "parent"}));
  EXPECT_EQ(comm["hash"], "0xcf264af53edbe986");
  EXPECT_EQ(comm["secondary_hash"], "0x1:0x1");
  const ordered_json& rank = comm["ranks"][0];
  EXPECT_EQ(keysOf(rank), (Keys{"rank", "host", "pid", "cuda_dev", "nvml_dev", "status", "collective_counts",
                                "p2p_counts", "other_counts", "last_op"}));
  EXPECT_EQ(keysOf(rank["status"]),
            (Keys{"init_state", "async_error", "finalize_called", "destroy_flag", "abort_flag"}));
  EXPECT_EQ(keysOf(rank["collective_counts"]),
            (Keys{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"}));
  EXPECT_EQ(rank["last_op"]["func"], "AllReduce");
  EXPECT_EQ(rank["last_op"]["age_sec"], 1.5);
  const ordered_json& missing = comm["missing_ranks"][0];
  EXPECT_EQ(keysOf(missing), (Keys{"rank", "host", "pid", "cuda_dev", "nvml_dev", "status"}));
  EXPECT_EQ(missing["status"], (ordered_json{{"unresponsive", true}, {"considered_dead", false}}));
  EXPECT_EQ(json["ras"], (ordered_json{{"collection_time_sec", 0.012}, {"timeouts_count", 0}}));
}

TEST(JsonReport, HasNamesAndParentsOfCommunicators) {
  Survey survey = sampleJob(1, 2);
  const ordered_json plain = reportOf(survey)["communicators"][0];
  EXPECT_TRUE(plain["name"].is_null() && plain["parent"].is_null());
  survey.comms.front().name = "tp \"1\"\n\xff";
  survey.comms.front().parent = 0xab;
  const ordered_json named = reportOf(survey)["communicators"][0];
  EXPECT_EQ(named["name"], "tp \"1\"\n\xef\xbf\xbd") << "whatever bytes a name has, the report is JSON";
  EXPECT_EQ(named["parent"], "0xab") << "as hash says it";
}

TEST(JsonReport, IsIndentedByTwo) {
  const std::string text = jsonReport(kSampleLibrary, sampleJob(1, 1), std::chrono::system_clock::now());
  EXPECT_EQ(text.substr(0, 4), "{\n  ");
  EXPECT_NE(text.find("\n      \"hash\""), std::string::npos);
  EXPECT_EQ(text.back(), '\n');
}

TEST(JsonReport, SaysWhoIsDead) {
  Survey survey = sampleJob(1, 2);
  loseRank(survey, 1);
  survey.processes[1].facts.state = ProcessState::Dead;
  survey.processes[1].unresponsive = true;
  EXPECT_EQ(reportOf(survey)["communicators"][0]["missing_ranks"][0]["status"],
            (ordered_json{{"unresponsive", false}, {"considered_dead", true}}));
}

TEST(JsonReport, HoldsTenThousandRanks) {
  const ordered_json json = reportOf(sampleJob(1250, 8));
  const ordered_json& comm = json["communicators"][0];
  EXPECT_EQ(comm["ranks_count"], 10000);
  EXPECT_EQ(comm["ranks"].size(), 10000);
  EXPECT_EQ(comm["ranks"][9999]["rank"], 9999);
  EXPECT_EQ(comm["ranks"][9999]["pid"], 10999);
}

TEST(EventJson, IsOneObject) {
  const Event event{EventKind::PeerUnresponsive, sampleProcess(0, 0, 3).facts, "why", std::chrono::system_clock::now()};
  const ordered_json json = ordered_json::parse(eventJson(event));
  EXPECT_EQ(keysOf(json), (Keys{"timestamp", "group", "event", "peer", "details"}));
  EXPECT_EQ(json["group"], "TRACE");
  EXPECT_EQ(json["event"], "PEER_UNRESPONSIVE");
  EXPECT_EQ(json["peer"], (ordered_json{{"host", "127.0.0.1"}, {"pid", 1000}, {"cuda_devs", {3}}, {"nvml_devs", {3}}}));
}

}  // namespace
}  // namespace tutti::ras
