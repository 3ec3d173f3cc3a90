// Nodes of one group over the example plugin switch_collnet, as threads of this process, through the adapters.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/dl.h"
#include "plugin/network/collnet.h"
#include "support/scoped_log.h"
#include "support/thread_ranks.h"
#include "support/until.h"

namespace tutti::test {

/// Where the build has put the example: the plugins of all versions, and the switch.
inline std::string switchFolder() {
  const char* folder = std::getenv("TUTTI_TEST_SWITCH_COLLNET");
  return folder != nullptr ? folder : ".";
}
inline std::string switchPath(int version) {
  return switchFolder() + "/libnccl-net-switch" + (version == 12 ? "" : "-v" + std::to_string(version)) + ".so";
}

/// A list of one version's faults, and misuse as an error, for its lifetime.
struct SwitchFaults {
  explicit SwitchFaults(const std::string& list) : faults("SWITCH_COLLNET_FAULTS", list) {}
  ScopedEnv faults;
  ScopedEnv checks{"SWITCH_COLLNET_CHECKS", "error"};
};

/// One node: its use of the collNet, and its connection.
struct SwitchNode {
  std::unique_ptr<plugin::CollNet> net;
  plugin::NetHandle handle{};
  void* listener = nullptr;
  void* connection = nullptr;
  Status connected;

  /// Registered for as long as this lives.
  struct Area {
    SwitchNode& node;
    std::vector<char> bytes;
    void* registration;
    Area(SwitchNode& n, std::size_t size)
        : node(n),
          bytes(size),
          registration(n.net->registerMemory(n.connection, bytes.data(), bytes.size(), plugin::PtrKind::Host).value()) {
    }
    ~Area() { EXPECT_TRUE(node.net->deregisterMemory(node.connection, registration).ok()); }
    plugin::CollNetBuffer part(std::size_t offset, std::size_t size) {
      return {bytes.data() + offset, size, registration};
    }
    plugin::CollNetBuffer whole() { return part(0, bytes.size()); }
  };

  /// Posts again until there is a request. Errors: what the call says.
  Result<void*> posted(const std::function<Result<void*>()>& post) {
    Result<void*> request = nullptr;
    const bool in = until([&] {
      request = post();
      return !request.ok() || request.value() != nullptr;
    });
    EXPECT_TRUE(in) << "no request in time";
    return request;
  }
  /// Waits for a request; how many bytes came.
  Result<int> finished(Result<void*> request) {
    if (!request.ok()) return request.status();
    int bytes = -1;
    Result<bool> done = false;
    const bool in = until([&] {
      done = net->test(request.value(), &bytes);
      return !done.ok() || done.value();
    });
    EXPECT_TRUE(in) << "no answer in time";
    if (!done.ok()) return done.status();
    return bytes;
  }
  Result<int> allReduce(const plugin::CollNetBuffer& send, const plugin::CollNetBuffer& recv,
                        plugin::CollNetReduction reduction) {
    return finished(posted([&] { return net->iallreduce(connection, send, recv, reduction); }));
  }
};

/// All nodes of a group. The library is loaded for as long as this lives.
class SwitchNodes {
 public:
  explicit SwitchNodes(int version, int nodes = 2, int device = 0) : library_(DlLibrary::open(switchPath(version))) {
    source_ = plugin::findCollNet(library_, switchPath(version));
    EXPECT_NE(source_, nullptr) << switchPath(version);
    if (source_ == nullptr) return;
    for (int i = 0; i < nodes; ++i) {
      auto& node = *nodes_.emplace_back(std::make_unique<SwitchNode>());
      auto attempt = source_->attempt({.commId = 7});
      EXPECT_EQ(attempt.why, "");
      node.net = std::move(attempt.net);
      node.listener = node.net->listen(device, node.handle).value();
    }
  }
  SwitchNodes(const SwitchNodes&) = delete;
  SwitchNodes& operator=(const SwitchNodes&) = delete;
  ~SwitchNodes() {
    for (auto& node : nodes_) {
      EXPECT_TRUE(node->connection == nullptr || node->net->close(node->connection).ok());
      EXPECT_TRUE(node->listener == nullptr || node->net->closeListen(node->listener).ok());
    }
  }

  /// Connects all of them; whether each has got a connection.
  bool connect() {
    std::vector<plugin::NetHandle> handles;
    for (auto& node : nodes_) handles.push_back(node->handle);
    runRanks(size(), [&](int i) {
      std::vector<plugin::NetHandle> own = handles;
      auto connection = at(i).net->connect(own, i, at(i).listener);
      at(i).connected = connection.status();
      if (connection.ok()) at(i).connection = connection.value();
    });
    bool all = true;
    for (auto& node : nodes_) all = all && node->connection != nullptr;
    return all;
  }
  /// The same calls on each of them at once.
  void each(const std::function<void(SwitchNode& node, int number)>& body) {
    runRanks(size(), [&](int i) { body(at(i), i); });
  }
  /// One more use of the collNet.
  std::unique_ptr<plugin::CollNet> attempt() { return source_->attempt({}).net; }
  int size() const { return static_cast<int>(nodes_.size()); }
  SwitchNode& at(int i) { return *nodes_[static_cast<std::size_t>(i)]; }

 private:
  DlLibrary library_;
  std::unique_ptr<plugin::LoadedCollNet> source_;
  std::vector<std::unique_ptr<SwitchNode>> nodes_;
};

}  // namespace tutti::test
