// What tutti-info makes of the counters of processes.
#include "tutti_info/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tutti::test {
namespace {

using tool::Sample;

TEST(MetricsSamples, AreReadWithTheirLabels) {
  const auto samples = tool::parseSamples(
      "# HELP a_total Something.\n# TYPE a_total counter\n"
      "a_total{host=\"h\",name=\"a \\\"b\\\" \\\\ \\n}\"} 17\n"
      "plain 2.5e3\n");
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].name, "a_total");
  EXPECT_EQ(samples[0].label("host"), "h");
  EXPECT_EQ(samples[0].label("name"), "a \"b\" \\ \n}");
  EXPECT_EQ(samples[0].label("other"), "");
  EXPECT_EQ(samples[0].value, 17);
  EXPECT_EQ(samples[1].name, "plain");
  EXPECT_EQ(samples[1].value, 2500);
}

TEST(MetricsSamples, LeaveOutWhatIsDamaged) {
  for (const char* line : {"", "a", "a{", "a{b", "a{b=\"", "a{b=\"c", "a{b=\"c\"", "a{b=\"c\"}", "a{b=\"c\"} x", "a ",
                           "{} 1 2", "a{b=c} 1", "a{b=\"c\\"}) {
    EXPECT_TRUE(tool::parseSamples(line).empty()) << line;
  }
}

TEST(JoinedMetrics, HaveEachHeadingOnceBeforeAllSamples) {
  const std::string one = "# HELP a A.\n# TYPE a counter\na{p=\"1\"} 1\n# HELP b B.\n# TYPE b gauge\nb{p=\"1\"} 2\n";
  const std::string two = "# HELP a A.\n# TYPE a counter\na{p=\"2\"} 3\n# HELP c C.\n# TYPE c gauge\nc{p=\"2\"} 4\n";
  EXPECT_EQ(tool::joinMetrics({one, two}),
            "# HELP a A.\n# TYPE a counter\na{p=\"1\"} 1\na{p=\"2\"} 3\n"
            "# HELP b B.\n# TYPE b gauge\nb{p=\"1\"} 2\n"
            "# HELP c C.\n# TYPE c gauge\nc{p=\"2\"} 4\n");
  EXPECT_EQ(tool::joinMetrics({}), "");
}

std::vector<Sample> samplesOf(int calls, double busBytes, double hostBytes) {
  const std::string labels = R"(host="h",pid="12",comm="0xab",name="tp",rank="1",ranks="4",device="3")";
  return tool::parseSamples("tutti_calls_total{" + labels + ",collective=\"AllReduce\"} " + std::to_string(calls) +
                            "\ntutti_bus_bytes_total{" + labels + ",collective=\"AllReduce\"} " +
                            std::to_string(busBytes) + "\ntutti_host_bytes_total{" + labels + ",transport=\"NET\"} " +
                            std::to_string(hostBytes) + "\ntutti_kernels_run{" + labels +
                            "} 1\ntutti_device_memory_bytes{" + labels + ",kind=\"persistent\"} 1048576\n");
}

TEST(Top, ShowsRatesBetweenTwoLooks) {
  const std::string table = tool::topTable(samplesOf(10, 1e9, 5e9), samplesOf(30, 5e9, 4e9), 2);
  EXPECT_NE(table.find("0xab"), std::string::npos) << table;
  EXPECT_NE(table.find(" tp "), std::string::npos) << table;
  EXPECT_NE(table.find(" 1/4   3      10.0       2.000      0.000      1.0  kernels run\n"), std::string::npos)
      << "connections that were closed are no negative rate:\n"
      << table;
}

TEST(Top, ShowsNoRateOfWhatIsNewAndTellsFailures) {
  std::vector<Sample> now = samplesOf(30, 5e9, 4e9);
  Sample failed = now.back();
  failed.name = "tutti_failed";
  failed.labels["error"] = "ncclRemoteError";
  failed.value = 1;
  now.push_back(failed);
  const std::string table = tool::topTable({}, now, 1);
  EXPECT_NE(table.find(" 0.0       0.000      0.000      1.0  failed: ncclRemoteError\n"), std::string::npos) << table;
}

TEST(Top, SaysForWhomARankWaits) {
  std::vector<Sample> now = samplesOf(30, 5e9, 4e9);
  for (const char* peer : {"0", "2"}) {
    Sample wait = now.back();
    wait.name = "tutti_wait_seconds";
    wait.labels = now.front().labels;
    wait.labels["operation"] = "AllReduce";
    wait.labels["peer"] = peer;
    wait.value = 12.25;
    now.push_back(wait);
    const std::string table = tool::topTable({}, now, 1);
    const std::string ranks = *peer == '0' ? "rank 0\n" : "ranks 0, 2\n";
    EXPECT_NE(table.find("  kernels run, AllReduce waits 12.2 s for " + ranks), std::string::npos) << table;
  }
}

TEST(Top, KeepsALineForARankWhateverItsNamesAre) {
  const std::vector<Sample> now = tool::parseSamples(
      "tutti_calls_total{host=\"h\",pid=\"99999999999\",comm=\"0xab\",name=\"a\\nb\x1b[2J\",rank=\"1\"} 17\n");
  const std::string table = tool::topTable({}, now, 1);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 2) << table;
  EXPECT_NE(table.find(" a?b?[2J "), std::string::npos) << table;
}

}  // namespace
}  // namespace tutti::test
