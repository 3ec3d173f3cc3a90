// Collectives of a group: each gets the algorithm, protocol and channels that the tuner chose; those that share a
// kernel share launches, side by side on the channels that have the least to do so far. Everything here depends on the
// list of collectives alone, which is the same on all ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "comm/plan/plan.h"

namespace tutti::comm {

struct PlanContext;

/// Lays collectives over channels and launches. Keeps nothing from one plan to the next but storage.
class CollectivePlanner {
 public:
  /// Appends the launches of the collectives among `ops` and sets what they use.
  Status plan(const PlanContext& context, std::span<const Op> ops, Plan& plan);

 private:
  /// A kernel and the launches of it so far; the last one is open.
  struct KernelLaunches {
    KernelShape shape;
    std::uint64_t bytes = 0;                                 ///< of all its collectives
    std::size_t current = 0;                                 ///< index of the open launch in the plan
    std::array<std::uint64_t, device::kMaxChannels> load{};  ///< bytes by channel in the open launch

    bool runs(const KernelShape& other) const;
  };

  Status decide(std::span<const Op> ops);
  void layOut(std::span<const Op> ops);
  Request requestFor(const Op& op, unsigned inGroup) const;
  std::size_t kernelFor(const Decision& decision);
  unsigned channelsFor(const Decision& decision, const KernelLaunches& kernel) const;
  unsigned leastLoaded(const KernelLaunches& kernel, unsigned channels) const;
  PlannedLaunch& openLaunch(KernelLaunches& kernel);
  void append(const Op& op, Decision& decision, KernelLaunches& kernel);
  void use(device::Algorithm algorithm);
  void useMesh();

  static constexpr std::size_t kNone = ~std::size_t{0};
  const PlanContext* context_ = nullptr;  ///< of the plan that is being made; the same for plan_
  Plan* plan_ = nullptr;
  std::vector<KernelLaunches> kernels_;  ///< in order of first appearance
  std::vector<std::size_t> kernelOf_;    ///< by decision
};

}  // namespace tutti::comm
