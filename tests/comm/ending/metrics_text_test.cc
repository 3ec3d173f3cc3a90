// Counters of communicators as Prometheus reads them.
#include "comm/ending/metrics_text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/host.h"

namespace tutti::test {
namespace {

using comm::CommMetrics;

std::string labels(const std::string& rest) {
  return "{host=\"" + hostName() + "\",pid=\"" + std::to_string(::getpid()) + "\"," + rest;
}

void expectLine(const std::string& text, const std::string& line) {
  EXPECT_NE(("\n" + text).find("\n" + line + "\n"), std::string::npos) << line << "\nis not in\n" << text;
}

TEST(MetricsText, HasASampleForEachRankOfEachMetric) {
  CommMetrics busy{.commId = 0xab, .name = "a \"b\"\n", .rank = 1, .nRanks = 4, .device = 2};
  busy.calls.push_back({"AllReduce", {3, 4096}, 1.5});
  busy.kernels.push_back({"RING", "LL", {2, 1024}});
  busy.transports.push_back({"NET/Socket/0", 4, 999, 7});
  busy.persistentBytes = 11;
  busy.releasableBytes = 22;
  busy.kernelsRun = true;
  busy.wait = {"AllReduce", 2.5, {0, 3}};
  busy.connecting = "Broadcast";
  CommMetrics failed{.commId = 0xcd, .rank = 0, .nRanks = 2};
  failed.error = "ncclRemoteError";
  const CommMetrics both[] = {busy, failed};
  const std::string text = comm::metricsText(both);

  const std::string one = labels(R"(comm="0xab",name="a \"b\"\n",rank="1",ranks="4",device="2")");
  const std::string two = labels(R"(comm="0xcd",name="",rank="0",ranks="2",device="0")");
  expectLine(text, "# TYPE tutti_calls_total counter");
  expectLine(text, "tutti_calls_total" + one + R"(,collective="AllReduce"} 3)");
  expectLine(text, "tutti_call_bytes_total" + one + R"(,collective="AllReduce"} 4096)");
  expectLine(text, "tutti_bus_bytes_total" + one + R"(,collective="AllReduce"} 6144)");
  expectLine(text, "tutti_launched_total" + one + R"(,algorithm="RING",protocol="LL"} 2)");
  expectLine(text, "tutti_launched_bytes_total" + one + R"(,algorithm="RING",protocol="LL"} 1024)");
  expectLine(text, "tutti_connection_ends" + one + R"(,transport="NET/Socket/0"} 4)");
  expectLine(text, "tutti_host_bytes_total" + one + R"(,transport="NET/Socket/0"} 999)");
  expectLine(text, "tutti_host_stalls_total" + one + R"(,transport="NET/Socket/0"} 7)");
  expectLine(text, "tutti_device_memory_bytes" + one + R"(,kind="persistent"} 11)");
  expectLine(text, "tutti_device_memory_bytes" + one + R"(,kind="releasable"} 22)");
  expectLine(text, "tutti_kernels_run" + one + "} 1");
  expectLine(text, "tutti_kernels_run" + two + "} 0");
  expectLine(text, "# TYPE tutti_wait_seconds gauge");
  expectLine(text, "tutti_wait_seconds" + one + R"(,operation="AllReduce",peer="0"} 2.5)");
  expectLine(text, "tutti_wait_seconds" + one + R"(,operation="AllReduce",peer="3"} 2.5)");
  EXPECT_EQ(text.find("tutti_wait_seconds" + two), std::string::npos) << "it waits for nobody";
  expectLine(text, "tutti_connecting" + one + R"(,collective="Broadcast"} 1)");
  expectLine(text, "tutti_failed" + one + "} 0");
  expectLine(text, "tutti_failed" + two + R"(,error="ncclRemoteError"} 1)");
}

TEST(OpTally, CountsSizesAsBenchmarksDo) {
  comm::OpTally tally;
  comm::Op op{.count = 10, .datatype = ncclFloat32};
  for (const comm::ApiFunc func : {comm::ApiFunc::AllReduce, comm::ApiFunc::AllGather, comm::ApiFunc::AlltoAll}) {
    op.func = func;
    tally.called(op, 4);
    tally.called(op, 4);
  }
  EXPECT_EQ(tally.calls(comm::ApiFunc::AllReduce).operations, 2U);
  EXPECT_EQ(tally.calls(comm::ApiFunc::AllReduce).bytes, 80U);
  EXPECT_EQ(tally.calls(comm::ApiFunc::AllGather).bytes, 320U);
  EXPECT_EQ(tally.calls(comm::ApiFunc::AlltoAll).bytes, 320U);
  EXPECT_EQ(tally.calls(comm::ApiFunc::Reduce).operations, 0U);
}

TEST(OpTally, KnowsTheLastCall) {
  comm::OpTally tally;
  EXPECT_FALSE(tally.last().func.has_value());
  tally.called({.func = comm::ApiFunc::AllReduce, .count = 100}, 4);
  tally.called({.func = comm::ApiFunc::AllGather, .count = 2, .datatype = ncclInt32}, 4);
  EXPECT_EQ(tally.last().func, comm::ApiFunc::AllGather);
  EXPECT_EQ(tally.last().bytes, 8U) << "of its count and type";
  EXPECT_LT(tally.last().ageMs, 60'000U);
}

}  // namespace
}  // namespace tutti::test
