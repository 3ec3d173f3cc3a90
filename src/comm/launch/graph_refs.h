// Graphs that contain operations of a communicator keep what their kernels use: memory of the channels, the kernels,
// the events between launches. So graphs and communicators may be destroyed in any order.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "gpu/driver.h"

namespace tutti::gpu {
class Device;
}

namespace tutti::comm {

/// Counts the graphs, and executable copies of graphs, that contain operations of one communicator. Any thread.
class GraphRefs {
 public:
  GraphRefs();

  /// From now on `graph`, which is being captured, and everything made of it count until they are destroyed. Errors:
  /// the driver's; a driver that cannot say when a graph is destroyed (older than CUDA 11.3) is ncclInvalidUsage.
  /// `kept`, which may be null, ends then, on a thread of the driver's, where no CUDA call is allowed.
  Status addTo(const gpu::Device& device, CUgraph graph, std::shared_ptr<const void> kept = {});

  bool any() const;

  /// Leaves `parts` to the graphs: it is freed after the last of them, by who calls takeAbandoned() next. false, and
  /// `parts` stays with the caller, if there are none.
  bool deferFree(std::shared_ptr<void> parts);

  /// What graphs have left behind by now, for the caller to free. The driver tells of a graph's end on threads on which
  /// nothing may be freed, so init, destroy and abort of other communicators do it.
  static std::vector<std::shared_ptr<void>> takeAbandoned();

 private:
  struct State;
  struct Hold;
  std::shared_ptr<State> state_;
};

}  // namespace tutti::comm
