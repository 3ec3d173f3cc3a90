// The example plugin switch_collnet as a whole: its network beside its collNet, its devices, several groups at once,
// the switch as a program of its own, and what plugin and switch count.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "nccl_net.h"
#include "plugin/network/registry.h"
#include "plugin/network/switch_nodes.h"
#include "plugin/plugin_fixture.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

std::string contentOf(const std::string& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/// A file that is not there, and is gone afterwards.
struct OwnFile {
  std::string path = testing::TempDir() + "switch-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
  ~OwnFile() { std::remove(path.c_str()); }
  inline static int number = 0;
};

/// The switch as a program, until this ends.
class SwitchProgram {
 public:
  explicit SwitchProgram(const std::string& faults = "") {
    const std::string program = switchFolder() + "/switch_collnet_switch";
    std::vector<std::string> words{program, "--port-file", portFile_.path, "--statistics-file", statistics_.path};
    if (!faults.empty()) words.insert(words.end(), {"--faults", faults});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t quiet;
    ::posix_spawn_file_actions_init(&quiet);
    ::posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    EXPECT_EQ(::posix_spawn(&child_, program.c_str(), &quiet, nullptr, arguments.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&quiet);
    EXPECT_TRUE(until([&] { return !contentOf(portFile_.path).empty(); })) << "no port in time";
    address_ = "127.0.0.1:" + std::to_string(std::atoi(contentOf(portFile_.path).c_str()));
  }
  ~SwitchProgram() {
    if (child_ > 0) stop();
  }
  const std::string& address() const { return address_; }
  /// What it says while it runs.
  std::string ask() const {
    const std::string command = switchFolder() + "/switch_collnet_switch --ask " + address_;
    std::FILE* const answer = ::popen(command.c_str(), "r");
    std::string text;
    std::array<char, 4096> part{};
    while (std::fgets(part.data(), part.size(), answer) != nullptr) text += part.data();
    EXPECT_EQ(::pclose(answer), 0);
    return text;
  }
  /// Ends it; its exit status.
  int stop() {
    ::kill(child_, SIGTERM);
    return end();
  }
  int end() {
    int status = -1;
    EXPECT_EQ(::waitpid(child_, &status, 0), child_);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  /// What it has written at its end.
  std::string statistics() const { return contentOf(statistics_.path); }

 private:
  OwnFile portFile_;
  OwnFile statistics_;
  pid_t child_ = 0;
  std::string address_;
};

/// An AllReduce of `bytes` bytes, each 1, over two nodes.
void reduceOnes(SwitchNode& node, std::size_t bytes) {
  SwitchNode::Area area(node, bytes);
  std::fill(area.bytes.begin(), area.bytes.end(), '\1');
  EXPECT_TRUE(node.allReduce(area.whole(), area.whole(), {ncclUint8, ncclSum}).ok());
  EXPECT_EQ(area.bytes, std::vector<char>(bytes, '\2'));
}

/// The line of a node in statistics.
std::string lineOf(const std::string& text, int node) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if ((" " + line).find(" node=" + std::to_string(node) + " ") != std::string::npos) return line;
  }
  return "";
}

// ---- devices and network

class SwitchPlugin : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Versions, SwitchPlugin, testing::Values(6, 7, 8, 9, 10, 11, 12),
                         [](const auto& test) { return "V" + std::to_string(test.param); });

TEST_P(SwitchPlugin, IsTakenWithItsCollNet) {
  const ScopedEnv count("SWITCH_COLLNET_DEVICES", "3");
  const ScopedEnv coll("SWITCH_COLLNET_COLL_DEVICES", "2");
  const ScopedEnv names("SWITCH_COLLNET_NAMES", "left,right");
  const ScopedEnv paths("SWITCH_COLLNET_PCI", ",/sys/devices/pci0000:00/0000:00:03.0");
  const ScopedEnv speed("SWITCH_COLLNET_SPEED", "400000");
  const ScopedEnv most("SWITCH_COLLNET_MAX_COLL_BYTES", "4096");
  Params::Misc settings;
  settings.netPlugin = switchPath(GetParam());
  plugin::NetRegistry registry(settings, true, {});
  const auto lease = registry.assign("switch", {}).value();
  ASSERT_NE(lease->collNet(), nullptr);
  EXPECT_EQ(lease->net().devices().value(), 3);
  EXPECT_EQ(lease->collNet()->devices().value(), 2);
  for (const auto part : {plugin::NetPart::Net, plugin::NetPart::CollNet}) {
    const plugin::NetProperties first = lease->part(part).properties(0).value();
    const plugin::NetProperties second = lease->part(part).properties(1).value();
    EXPECT_EQ(first.name, "left");
    EXPECT_EQ(first.pciPath, "");
    EXPECT_EQ(second.name, "right");
    EXPECT_EQ(second.pciPath, "/sys/devices/pci0000:00/0000:00:03.0");
    EXPECT_NE(first.guid, second.guid);
    EXPECT_EQ(second.speedMbps, 400000);
    EXPECT_EQ(second.maxCollBytes, GetParam() >= 9 ? 4096U : static_cast<std::size_t>(MAX_COLLNET_SIZE));
    EXPECT_EQ(second.railId, GetParam() >= 12 ? 1 : -1);
  }
  EXPECT_EQ(lease->net().properties(2).value().name, "switch2");
  expectLog("getProperties: there is no device 2");
  expectLog("getProperties: there is no device 2");
  EXPECT_FALSE(lease->collNet()->properties(2).ok());
  EXPECT_EQ(lease->collNet()->gathers(), GetParam() >= 8);
}

TEST_P(SwitchPlugin, CarriesMessages) {
  const DlLibrary library = DlLibrary::open(switchPath(GetParam()));
  const auto source = plugin::findNet(library, switchPath(GetParam()));
  ASSERT_NE(source, nullptr);
  const auto net = source->open({}).value();
  const Loop loop(*net);
  std::vector<std::vector<char>> sent;
  std::vector<std::vector<char>> received;
  std::vector<void*> requests;
  for (std::size_t i = 0; i < 20; ++i) {
    sent.emplace_back(i * 40000, static_cast<char>(i));
    received.emplace_back(20 * 40000);
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    requests.push_back(net->isend(loop.sender, {sent[i].data(), sent[i].size()}).value());
    const plugin::NetBuffer place{received[i].data(), received[i].size()};
    requests.push_back(net->irecv(loop.receiver, std::span(&place, 1)).value());
  }
  // The latest first: order is the network's business.
  for (std::size_t i = requests.size(); i > 0; --i) {
    ASSERT_NE(requests[i - 1], nullptr);
    std::array<int, 32> sizes{};
    EXPECT_TRUE(until([&] { return net->test(requests[i - 1], sizes).value(); }));
    const std::size_t message = (i - 1) / 2;
    EXPECT_EQ(sizes[0], static_cast<int>(sent[message].size()));
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_TRUE(std::equal(sent[i].begin(), sent[i].end(), received[i].begin())) << i;
  }
}

TEST_P(SwitchPlugin, SaysThatASenderIsGone) {
  const DlLibrary library = DlLibrary::open(switchPath(GetParam()));
  const auto source = plugin::findNet(library, switchPath(GetParam()));
  const auto net = source->open({}).value();
  Loop loop(*net);
  char byte = 0;
  const plugin::NetBuffer place{&byte, 1};
  void* const request = net->irecv(loop.receiver, std::span(&place, 1)).value();
  ASSERT_NE(request, nullptr);
  EXPECT_TRUE(net->closeSend(loop.sender).ok());
  loop.sender = nullptr;  // closing nothing is allowed
  allowLog("the connection was closed by the other side");
  EXPECT_TRUE(until([&] { return !net->test(request, {}).ok(); }));
}

TEST(SwitchPluginMemory, OfGpusIsTakenAndFlushedIfItIsTold) {
  const ScopedEnv cuda("SWITCH_COLLNET_CUDA", "1");
  const OwnFile file;
  const ScopedEnv statistics("SWITCH_COLLNET_STATISTICS", file.path);
  {
    SwitchNodes nodes(12, 1);
    ASSERT_TRUE(nodes.connect());
    SwitchNode& node = nodes.at(0);
    EXPECT_EQ(node.net->properties(0).value().ptrSupport, NCCL_PTR_HOST | NCCL_PTR_CUDA);
    EXPECT_TRUE(node.net->properties(0).value().forceFlush);
    int number = 5;
    void* const registration =
        node.net->registerMemory(node.connection, &number, sizeof(number), plugin::PtrKind::Cuda).value();
    const plugin::CollNetBuffer buffer{&number, sizeof(number), registration};
    EXPECT_TRUE(node.allReduce(buffer, buffer, {ncclInt32, ncclSum}).ok());
    const auto flush = node.net->iflush(node.connection, buffer);
    ASSERT_NE(flush.value(), nullptr);
    EXPECT_EQ(node.finished(flush).value(), 4);
    EXPECT_EQ(number, 5);
    EXPECT_TRUE(node.net->deregisterMemory(node.connection, registration).ok());
  }
  EXPECT_EQ(contentOf(file.path),
            "node=0 of=1 device=0 allreduce=1 allgather=0 reducescatter=0 bytes_out=4 bytes_in=4 flushes=1 "
            "registrations=1\n");
}

// ---- many groups, and one thread at a time

TEST_P(SwitchPlugin, ServesManyGroupsAtOnce) {
  const ScopedEnv count("SWITCH_COLLNET_DEVICES", "4");
  std::vector<std::unique_ptr<SwitchNodes>> groups;
  for (int i = 0; i < 6; ++i) groups.push_back(std::make_unique<SwitchNodes>(GetParam(), 2, i % 4));
  runRanks(6, [&](int i) {
    SwitchNodes& group = *groups[static_cast<std::size_t>(i)];
    EXPECT_TRUE(group.connect());
    group.each([&](SwitchNode& node, int) {
      for (std::size_t n = 1; n < 20; ++n) reduceOnes(node, 1000 * n);
    });
  });
}

TEST(SwitchPluginThreads, TwoAtATimeAreNoticed) {
  const SwitchFaults faults("late=20000");
  SwitchNodes nodes(12, 1);
  ASSERT_TRUE(nodes.connect());
  SwitchNode& node = nodes.at(0);
  SwitchNode::Area area(node, 4);
  void* const request = node.net->iallreduce(node.connection, area.whole(), area.whole(), {ncclInt32, ncclSum}).value();
  allowLog("another thread is in a call of the same connection: one at a time drives it");
  std::atomic<bool> noticed{false};
  // Without a pause, so that they meet.
  const Deadline deadline = Deadline::in(kGenerous);
  runRanks(2, [&](int) {
    while (!noticed && !deadline.expired()) {
      if (!node.net->test(request, nullptr).ok()) noticed = true;
    }
  });
  EXPECT_TRUE(noticed);
}

// ---- the switch as a program

TEST_P(SwitchPlugin, UsesASwitchOfItsOwnProcess) {
  SwitchProgram program;
  const ScopedEnv address("SWITCH_COLLNET_ADDRESS", program.address());
  const OwnFile file;
  const ScopedEnv own("SWITCH_COLLNET_STATISTICS", file.path);
  {
    SwitchNodes nodes(GetParam(), 2);
    ASSERT_TRUE(nodes.connect());
    nodes.each([](SwitchNode& node, int) {
      reduceOnes(node, 1000);
      reduceOnes(node, 500);
    });
    const std::string asked = program.ask();
    for (int i = 0; i < 2; ++i) {
      const std::string line = lineOf(asked, i);
      EXPECT_NE(line.find("of=2 state=joined allreduce=2 allgather=0 reducescatter=0 bytes_in=1500 bytes_out=1500"),
                std::string::npos)
          << asked;
      EXPECT_NE(line.find("process " + std::to_string(::getpid()) + " switch0"), std::string::npos) << line;
    }
  }
  // What both have seen of a node is the same.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(lineOf(contentOf(file.path), i),
              "node=" + std::to_string(i) +
                  " of=2 device=0 allreduce=2 allgather=0 reducescatter=0 bytes_out=1500 bytes_in=1500 flushes=0 "
                  "registrations=2");
  }
  EXPECT_TRUE(until([&] { return program.ask().find("state=joined") == std::string::npos; }));
  EXPECT_EQ(program.stop(), 0);
  EXPECT_NE(lineOf(program.statistics(), 1).find("state=left allreduce=2"), std::string::npos) << program.statistics();
}

TEST(SwitchProgram, CountsWhatGathersAndScattersMove) {
  SwitchProgram program;
  const ScopedEnv address("SWITCH_COLLNET_ADDRESS", program.address());
  SwitchNodes nodes(12, 2);
  ASSERT_TRUE(nodes.connect());
  nodes.each([](SwitchNode& node, int) {
    SwitchNode::Area area(node, 300);
    const plugin::CollNetWindow window{100, 0, 200};
    EXPECT_TRUE(
        node.finished(node.net->iallgather(node.connection, area.part(0, 100), area.part(100, 200), window)).ok());
    EXPECT_TRUE(node.finished(node.net->ireducescatter(node.connection, area.part(100, 200), area.part(0, 100), window,
                                                       {ncclInt8, ncclSum}))
                    .ok());
  });
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(lineOf(program.ask(), i).find("allreduce=0 allgather=1 reducescatter=1 bytes_in=300 bytes_out=300"),
              std::string::npos);
  }
}

TEST(SwitchProgram, DiesIfItIsTold) {
  SwitchProgram program("die=0");
  const ScopedEnv address("SWITCH_COLLNET_ADDRESS", program.address());
  SwitchNodes nodes(12, 1);
  ASSERT_TRUE(nodes.connect());
  allowLog("device 0: ");
  allowLog("switch " + program.address());
  SwitchNode::Area area(nodes.at(0), 4);
  EXPECT_EQ(nodes.at(0).allReduce(area.whole(), area.whole(), {ncclInt32, ncclSum}).status().code(), ncclRemoteError);
  EXPECT_EQ(program.end(), 3);
}

TEST(SwitchProgram, ThatIsKilledIsMissed) {
  SwitchProgram program;
  const ScopedEnv address("SWITCH_COLLNET_ADDRESS", program.address());
  SwitchNodes nodes(12, 2);
  ASSERT_TRUE(nodes.connect());
  EXPECT_EQ(program.stop(), 0);
  allowLog("switch " + program.address());
  nodes.each([](SwitchNode& node, int) {
    SwitchNode::Area area(node, 4);
    EXPECT_EQ(node.allReduce(area.whole(), area.whole(), {ncclInt32, ncclSum}).status().code(), ncclRemoteError);
  });
}

TEST(SwitchProgram, IsNotDisturbedByStrangers) {
  SwitchProgram program;
  const ScopedEnv address("SWITCH_COLLNET_ADDRESS", program.address());
  SwitchNodes nodes(12, 2);
  ASSERT_TRUE(nodes.connect());
  const int port = std::atoi(program.address().substr(program.address().find(':') + 1).c_str());
  std::vector<int> strangers;
  for (const std::string& words : {std::string("GET / HTTP/1.1\r\nHost: switch\r\nAccept: everything there is\r\n\r\n"),
                                   std::string("SCOL"), std::string("SCOL") + std::string(200, '\xff')}) {
    const int fd = strangers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    EXPECT_EQ(::send(fd, words.data(), words.size(), MSG_NOSIGNAL), static_cast<ssize_t>(words.size()));
  }
  nodes.each([](SwitchNode& node, int) { reduceOnes(node, 100000); });
  // It has sent away those who talked enough to be known as strangers.
  for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
    char byte = 0;
    EXPECT_LE(::recv(strangers[i], &byte, 1, 0), 0) << i;
  }
  for (const int fd : strangers) ::close(fd);
}

TEST(SwitchProgram, ExplainsItselfToWhoCallsItWrongly) {
  const std::string program = switchFolder() + "/switch_collnet_switch";
  EXPECT_EQ(WEXITSTATUS(std::system((program + " --unknown 2>/dev/null").c_str())), 2);
  EXPECT_EQ(WEXITSTATUS(std::system((program + " --port 70000 2>/dev/null").c_str())), 2);
  EXPECT_EQ(WEXITSTATUS(std::system((program + " --faults lat=3 2>/dev/null").c_str())), 1);
  EXPECT_EQ(WEXITSTATUS(std::system((program + " --ask 127.0.0.1:1 2>/dev/null").c_str())), 1);
}

}  // namespace
}  // namespace tutti::test
