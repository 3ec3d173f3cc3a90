// The operations of a plan of which profilers hear, and whose its works are.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "device/work.h"
#include "plugin/profiler.h"

namespace tutti::comm {

/// An operation whose own event is told, and which kinds are of what comes of it.
struct ToldOperation {
  plugin::Event event{};  ///< Coll or P2p
  int mask = 0;
};

/// Finds whose a work is. Works come in another order than calls, those of equal calls in the same. Each is asked for
/// once.
class OperationFinder {
 public:
  /// Nobody wants to hear of the operation.
  static constexpr std::size_t kNobody = ~std::size_t{0};

  /// `told` must outlive it.
  explicit OperationFinder(std::span<const ToldOperation> told) : told_(told), taken_(told.size()) {}

  /// Places in `told`.
  std::size_t collective(const device::CollWork& work);
  std::size_t message(bool sends, int peer, const void* buffer);
  int maskOf(std::size_t operation) const { return operation == kNobody ? 0 : told_[operation].mask; }

 private:
  template <class Is>
  std::size_t find(const Is& is);

  std::span<const ToldOperation> told_;
  std::vector<bool> taken_;
  std::size_t first_ = 0;  ///< those before are taken
};

}  // namespace tutti::comm
