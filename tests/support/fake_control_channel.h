// A ControlChannel between threads of one process.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/ranks/control_channel.h"

namespace tutti::test {

/// The shared middle of N in-process channels. Rank r uses channel(r) from its own thread.
///
///   FakeWorld world(4);
///   runRanks(4, [&](int r) { EXPECT_TRUE(world.channel(r).barrier().ok()); });
class FakeWorld {
 public:
  /// `limit` bounds every wait: a rank that stays away gives the others ncclRemoteError naming it.
  explicit FakeWorld(int size, std::chrono::milliseconds limit = std::chrono::seconds(20));
  ~FakeWorld();

  int size() const { return static_cast<int>(channels_.size()); }
  ControlChannel& channel(int rank) { return *channels_.at(static_cast<std::size_t>(rank)); }
  /// Aborts every rank, as a died peer would.
  void abortAll(Status why);

  struct Shared;

 private:
  std::shared_ptr<Shared> shared_;
  std::vector<std::unique_ptr<ControlChannel>> channels_;
};

}  // namespace tutti::test
