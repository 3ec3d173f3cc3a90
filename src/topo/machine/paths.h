// The best path between any two nodes of a machine, and what settings and hardware make of it.
#pragma once

#include <vector>

#include "base/status.h"
#include "topo/machine/machine.h"
#include "topo/machine/path_type.h"

namespace tutti::topo {

struct PathSettings;

struct Path {
  PathType type = PathType::Dis;
  float bandwidth = 0;     ///< GB/s, the smallest on the way
  std::vector<int> links;  ///< numbers of the machine's links, in order of travel
};

/// Ways between all nodes; a value, constant once computed.
class PathTable {
 public:
  explicit PathTable(int nodes) : nodes_(static_cast<std::size_t>(nodes)), paths_(nodes_ * nodes_) {}
  const Path& of(int from, int to) const { return paths_[index(from, to)]; }
  Path& of(int from, int to) { return paths_[index(from, to)]; }

 private:
  std::size_t index(int from, int to) const {
    return static_cast<std::size_t>(from) * nodes_ + static_cast<std::size_t>(to);
  }

  std::size_t nodes_;
  std::vector<Path> paths_;
};

/// Best paths by links alone: lower type first, then more bandwidth, then fewer hops. Never through a GPU, but NVLink
/// in and out of one (NVB).
PathTable shortestPaths(const Machine& machine, const PathSettings& settings);

/// shortestPaths, then what P2P, SHM, GPUDirect and PXN make of them (docs/topology.md, "Paths").
/// A pair of GPUs that neither P2P nor SHM connects has type NET and no links.
/// Errors: ncclUnhandledCudaError, naming both and the host, when NVML refuses P2P between GPUs that NVLink joins.
Result<PathTable> computePaths(const Machine& machine, const PathSettings& settings);

/// Part of a link's bandwidth that a flow takes: GB/s on `link` for each GB/s of the flow.
struct LinkLoad {
  int link = -1;
  float factor = 1;
};

/// What one GB/s from `from` to `to` over their path costs on the machine's links, with what CPUs add to it
/// (docs/topology.md, "Loads"); links may be named twice.
std::vector<LinkLoad> loadsOf(const Machine& machine, const PathTable& paths, int from, int to);

/// NICs nearest to a GPU: those with most bandwidth, among them those of the lowest type; node numbers, in the
/// machine's order.
std::vector<int> localNets(const Machine& machine, const PathTable& paths, int gpu);
/// GPUs nearest to a NIC, likewise.
std::vector<int> localGpus(const Machine& machine, const PathTable& paths, int net);

/// The NIC that channel `channel` of a GPU uses: of its local NICs at most `netsPerGpu` in turn (0: as many as the GPUs
/// near to them leave it), each GPU starting at another one; -1: none.
int netOfChannel(const Machine& machine, const PathTable& paths, int gpu, int channel, int netsPerGpu = 0);

/// The best GPU-to-GPU path of the machine, with several nodes GPU-to-NIC, and the most any GPU can put out; GB/s. One
/// GPU alone: 5000 each.
struct MachineBandwidth {
  float best = 0;
  float total = 0;
};
MachineBandwidth machineBandwidth(const Machine& machine, const PathTable& paths, bool interNode);

}  // namespace tutti::topo
