#include "topo/paths.h"

namespace tutti {

Result<PathTable> computePaths(const Machine& machine, const PathSettings& settings) {
  return shortestPaths(machine, settings);
}

}  // namespace tutti
