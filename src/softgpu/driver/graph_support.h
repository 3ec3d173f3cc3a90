// From graph and node handles to objects, shared by the graph entry points.
#pragma once

#include <vector>

#include "softgpu/driver/entry.h"

namespace tutti::softgpu {

/// Runs `body` on a live graph, with the machine's lock held.
template <class Body>
CUresult withGraph(const char* name, CUgraph handle, Body&& body) {
  return call(name, [&]() -> CUresult {
    const std::shared_ptr<Graph> graph = machine().graphs.find(handle);
    if (graph == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    std::lock_guard<std::mutex> guard(machine().lock);
    return body(*graph);
  });
}

inline Node* nodeOf(CUgraphNode handle) {
  return reinterpret_cast<Node*>(handle);
}
inline CUgraphNode handleOf(const Node* node) {
  return reinterpret_cast<CUgraphNode>(const_cast<Node*>(node));
}

/// The answer to "how many, and which": fills up to *count entries, or only counts when `out` is null.
CUresult giveNodes(const std::vector<const Node*>& nodes, CUgraphNode* out, size_t* count);

/// A copy of one 3D shape as rows; the shapes that are not rows of equal distance are refused.
CUresult rowsOf(const CUDA_MEMCPY3D& copy, CopyOperation* rows);

/// What a launch is given besides its function.
struct LaunchShape {
  unsigned grid[3];
  unsigned block[3];
  unsigned sharedBytes;
  void** params;
  void** extra;
  bool cooperative = false;  ///< its blocks may wait for one another
  CUevent begun = nullptr;   ///< recorded when the last block begins; null: nobody asks
};

/// Checks a launch on the device of `context`, makes the code if it is the first one, and copies the parameters.
CUresult kernelOperation(CUfunction handle, Context* context, const LaunchShape& shape, KernelOperation* operation);

}  // namespace tutti::softgpu
