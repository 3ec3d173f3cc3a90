// Stand-in for a network that reduces by itself, and for the host threads that issue its calls: it does what kernels of
// all nodes ask for, and finds out when they disagree.
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/collnet_view.h"
#include "device/work.h"

namespace tutti::device::test {

class CollNetNetwork {
 public:
  /// Connections that make calls together: by node, then by lane.
  using Set = std::vector<std::vector<CollNetConn>>;

  void join(const Set& set, std::uint64_t firstStep) { calls_.push_back({set, firstStep, firstStep}); }

  /// Makes the calls for which all nodes are ready, one a set at most. Returns whether there were any. One thread.
  bool move();
  /// Makes no more than `n` calls from now on.
  void stopAfter(std::uint64_t n) { left_ = n; }
  /// Empty, or what kernels did wrong.
  const std::string& wrong() const { return wrong_; }
  /// How often a node's memory was used past its slots, to send from and to receive into.
  std::uint64_t sentFrom() const { return sentFrom_; }
  std::uint64_t receivedInto() const { return receivedInto_; }
  /// For when kernels have ended: empty, or which counter is not where the calls are.
  std::string unfinished() const;

 private:
  /// What a set has done.
  struct Calls {
    Set set;
    std::uint64_t step;
    std::uint64_t freed;  ///< steps whose send slots are free again
  };
  /// What one node said of a step.
  struct Said {
    std::uint64_t call, begin, bytes, perNode;
    bool operator==(const Said&) const = default;
  };

  static bool ready(const Calls& calls);
  static Said saidBy(const CollNetConn& lane, std::uint64_t step);
  bool agreed(const Calls& calls, Said& said);
  const std::byte* sentAt(const CollNetConn& lane, std::uint64_t step, std::uint64_t offset, std::uint64_t into);
  std::byte* receivedAt(const CollNetConn& lane, std::uint64_t step, std::uint64_t offset, std::uint64_t into);
  std::vector<std::byte> reduced(const Calls& calls, const CollNetCall& call, std::uint64_t offset,
                                 std::uint64_t bytes);
  void perform(const Calls& calls, const Said& said);
  void refuse(std::string why) {
    if (wrong_.empty()) wrong_ = std::move(why);
  }

  std::vector<Calls> calls_;
  std::uint64_t left_ = ~std::uint64_t{0};
  std::uint64_t sentFrom_ = 0, receivedInto_ = 0;
  std::string wrong_;
};

/// A thread that drives a network while it lives.
class CollNetThread {
 public:
  explicit CollNetThread(CollNetNetwork& network)
      : thread_([&network](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            if (!network.move()) std::this_thread::yield();
          }
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace tutti::device::test
