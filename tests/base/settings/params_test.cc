#include "base/settings/params.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/log.h"
#include "support/log_capture.h"

namespace tutti {
namespace {

Params with(const char* name, const char* value) {
  return Params::read(MapEnv(Settings{{name, value}}));
}

TEST(Params, IntegersFollowStrtollWithBaseZero) {
  EXPECT_EQ(parseInteger("12").value, 12);
  EXPECT_EQ(parseInteger("0x10").value, 16);
  EXPECT_EQ(parseInteger("010").value, 8);
  EXPECT_EQ(parseInteger(" -5 apples").value, -5);
  EXPECT_EQ(parseInteger("yes").value, 0);
  EXPECT_EQ(parseInteger("").value, std::nullopt);
  EXPECT_TRUE(parseInteger("99999999999999999999").outOfRange);
}

TEST(Params, DefaultsHoldWhereNothingIsSet) {
  const Params params = Params::read(MapEnv());
  EXPECT_FALSE(params.tuning.buffSize.has_value()) << "automatic";
  EXPECT_TRUE(params.transports.multiRankGpu);
  EXPECT_EQ(params.tuning.minCtas, std::nullopt);
  EXPECT_EQ(params.sockets.bootstrapTimeoutSec, 300);
}

TEST(Params, EachKindOfRowReadsItsValue) {
  EXPECT_TRUE(with("NCCL_P2P_DISABLE", "2").transports.p2pDisable);
  EXPECT_FALSE(with("NCCL_P2P_DISABLE", "yes").transports.p2pDisable);
  EXPECT_EQ(with("NCCL_BUFFSIZE", "0x10000").tuning.buffSize, 65536);
  EXPECT_EQ(with("NCCL_MIN_CTAS", "4").tuning.minCtas, 4);
  EXPECT_EQ(with("NCCL_SOCKET_IFNAME", "=lo").sockets.ifname, "=lo");
  EXPECT_EQ(with("NCCL_MAX_NRINGS", "3").tuning.maxNchannels, 3);
}

TEST(Params, BadValuesGiveDefaultOrNearest) {
  EXPECT_EQ(with("NCCL_MIN_CTAS", "65").tuning.minCtas, std::nullopt);
  EXPECT_EQ(with("NCCL_MAX_NCHANNELS", "0").tuning.maxNchannels, 1);
  EXPECT_EQ(with("NCCL_NTHREADS", "-2").tuning.nThreads, -2);
  EXPECT_EQ(with("NCCL_SOCKET_FAMILY", "af_inet").sockets.family, "");
  EXPECT_EQ(with("NCCL_CHECK_MODE", "debug_local").misc.checkMode, "DEBUG_LOCAL");
}

TEST(Params, SetValuesAreTold) {
  ::setenv("NCCL_DEBUG", "INFO", 1);
  resetLog();
  with("NCCL_BUFFSIZE", "65536");
  with("NCCL_SOCKET_IFNAME", "eth");
  with("NCCL_MIN_CTAS", "99");
  with("TUTTI_COMM_KEY", "hush");
  ::unsetenv("NCCL_DEBUG");
  resetLog();
  const std::string text = test::capturedText();
  EXPECT_NE(text.find("NCCL INFO NCCL_BUFFSIZE set by environment to 65536.\n"), std::string::npos);
  EXPECT_NE(text.find("NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth\n"), std::string::npos);
  EXPECT_NE(text.find("Invalid value 99 for NCCL_MIN_CTAS, using default unset."), std::string::npos);
  EXPECT_EQ(text.find("hush"), std::string::npos);
}

TEST(Params, UnknownNameSuggestsNearest) {
  const auto sentences = unknownSettings(MapEnv(Settings{{"NCCL_BUFSIZE", "1"},
                                                         {"NCCL_IB_HCA", "x"},
                                                         {"PATH", "x"},
                                                         {"NCCL_TESTS_DEVICE", "1"},
                                                         {"NCCL_PLUGIN_P2P", "ucx"},
                                                         {"NCCL_UCX_TLS", "rc"},
                                                         {"NCCL_OFI_RDMA_MIN_POSTED_BOUNCE_BUFFERS", "8"},
                                                         {"NCCL_PROFILE_EVENT_MASK", "255"},
                                                         {"OFI_NCCL_PROTOCOL", "RDMA"},
                                                         {"TUTTI_ZZZZZZZZZZZZZ", "1"}}));
  ASSERT_EQ(sentences.size(), 2U);
  EXPECT_NE(sentences[0].find("Did you mean NCCL_BUFFSIZE?"), std::string::npos);
  EXPECT_EQ(sentences[1].find("Did you mean"), std::string::npos);
}

TEST(Params, CommunicatorsReadSomeSettingsAgain) {
  const Params first = Params::read(MapEnv(Settings{{"NCCL_ALGO", "ring"}, {"NCCL_BUFFSIZE", "8192"}}));
  const Params again = first.forCommunicator(MapEnv(Settings{{"NCCL_ALGO", "tree"}, {"NCCL_BUFFSIZE", "16384"}}));
  EXPECT_EQ(again.tuning.algo, "tree");
  EXPECT_EQ(again.tuning.buffSize, 8192);
  const Params open = Params::read(MapEnv(Settings{{"NCCL_NO_CACHE", "NCCL_BUFFSIZE"}}));
  EXPECT_EQ(open.forCommunicator(MapEnv(Settings{{"NCCL_BUFFSIZE", "16384"}})).tuning.buffSize, 16384);
  const MapEnv changed(Settings{{"NCCL_BUFFSIZE", "16384"}});
  EXPECT_EQ(first.forCommunicator(changed, {"NCCL_BUFFSIZE"}).tuning.buffSize, 16384);
}

TEST(Params, VisibleSettingsShowWhatTheLibraryWorksWith) {
  const MapEnv env({{"NCCL_DEBUG", "info"},
                    {"NCCL_SET_THREAD_NAME", "0x10"},
                    {"TUTTI_COMM_KEY", "secret"},
                    {"NCCL_BUFFSIZE", "8192"}});
  const auto settings = visibleSettings(Params::read(env));
  std::set<std::string> names;
  for (const VisibleSetting& setting : settings) names.insert(setting.name);
  std::istringstream document(paramsMarkdown());
  int rows = 0;
  for (std::string line; std::getline(document, line);) {
    if (!line.starts_with("| `NCCL_") && !line.starts_with("| `TUTTI_") && !line.starts_with("| `SOFTGPU_")) continue;
    EXPECT_TRUE(names.contains(line.substr(3, line.find('`', 3) - 3))) << line;
    ++rows;
  }
  EXPECT_EQ(static_cast<int>(names.size()), rows) << "all that the document lists";
  const std::string dump = visibleSettingsDump(Params::read(env));
  EXPECT_TRUE(dump.starts_with("=== ncclParam Registry Dump ===\n"));
  for (const char* line : {"\nNCCL_DEBUG=INFO\n", "\nNCCL_SET_THREAD_NAME=1\n", "\nNCCL_DEBUG_TIMESTAMP_LEVELS=WARN\n",
                           "\nNCCL_DEBUG_FILE=\n", "\nNCCL_PARAM_DUMP_ALL=0\n", "\nNCCL_BUFFSIZE=8192\n",
                           "\nNCCL_NTHREADS=-2\n", "\nNCCL_P2P_NVL_CHUNKSIZE=\n", "\nTUTTI_COMM_KEY=(hidden)\n"}) {
    EXPECT_NE(dump.find(line), std::string::npos) << line << "in\n" << dump;
  }
  EXPECT_EQ(dump.find("secret"), std::string::npos);
}

TEST(Params, DocumentIsCurrent) {
  const char* source = ::getenv("TUTTI_TEST_SOURCE_ROOT");
  if (source == nullptr) GTEST_SKIP() << "TUTTI_TEST_SOURCE_ROOT is not set";
  std::ifstream file(std::string(source) + "/docs/env.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), paramsMarkdown()) << "run tutti-info --env --markdown > docs/env.md";
}

TEST(Params, EveryRowOfTheDocumentHasFourCells) {
  std::istringstream text(paramsMarkdown());
  int rows = 0;
  for (std::string line; std::getline(text, line);) {
    if (line.empty() || line.front() != '|') continue;
    int bars = 0;
    for (std::size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\') ? 1 : 0;
    EXPECT_EQ(bars, 5) << line;
    ++rows;
  }
  EXPECT_GT(rows, 50);
}

TEST(Environment, FileGrammar) {
  const Settings s = parseSettingsFile("# c\nA=1\r\nB==x=y\n C=2\nnothing\n\nD= v \nA=3");
  EXPECT_EQ(s, (Settings{{"A", "3"}, {"B", "=x=y"}, {" C", "2"}, {"D", " v "}}));
}

TEST(Environment, RealBeatsUserBeatsSystem) {
  const std::string base = testing::TempDir() + "tutti_" + std::to_string(::getpid());
  const std::string user = base + "_user.conf";
  const std::string system = base + "_system.conf";
  std::ofstream(user) << "A=user\nB=user\n";
  std::ofstream(system) << "A=system\nB=system\nC=system\n";
  const MapEnv real(Settings{{"NCCL_CONF_FILE", user}, {"A", "real"}});
  const LayeredEnv env(real, system);
  EXPECT_EQ(env.get("A"), "real");
  EXPECT_EQ(env.get("B"), "user");
  EXPECT_EQ(env.get("C"), "system");
  EXPECT_EQ(env.get("D"), std::nullopt);
  EXPECT_EQ(env.names(), (std::vector<std::string>{"A", "B", "C", "NCCL_CONF_FILE"}));
  ::unlink(user.c_str());
  ::unlink(system.c_str());
}

TEST(Environment, OfTheProcessGetsWhatFilesSayAndItDoesNotHave) {
  const std::string base = testing::TempDir() + "tutti_pass_" + std::to_string(::getpid());
  const std::string user = base + "_user.conf";
  const std::string system = base + "_system.conf";
  std::ofstream(user) << "TEST_PASS_A=user\nTEST_PASS_B=user\nTEST_PASS_D=\n";
  std::ofstream(system) << "TEST_PASS_A=system\nTEST_PASS_B=system\nTEST_PASS_C==system \nTEST_PASS_D=system\n";
  ::setenv("TEST_PASS_A", "real", 1);
  const MapEnv real(Settings{{"NCCL_CONF_FILE", user}});
  const LayeredEnv env(real, system);
  EXPECT_EQ(::getenv("TEST_PASS_B"), nullptr);
  env.passOn();
  EXPECT_STREQ(::getenv("TEST_PASS_A"), "real");
  EXPECT_STREQ(::getenv("TEST_PASS_B"), "user");
  EXPECT_STREQ(::getenv("TEST_PASS_C"), "=system ");
  EXPECT_STREQ(::getenv("TEST_PASS_D"), "");
  for (const char* name : {"TEST_PASS_A", "TEST_PASS_B", "TEST_PASS_C", "TEST_PASS_D"}) ::unsetenv(name);
  ::unlink(user.c_str());
  ::unlink(system.c_str());
}

}  // namespace
}  // namespace tutti
