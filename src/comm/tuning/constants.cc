#include "comm/tuning/constants.h"

#include "comm/tuning/costs.h"

namespace tutti::comm {

const topo::costs::Constants& usualConstants(device::World world) {
  static constexpr topo::costs::Constants kHost = [] {
    topo::costs::Constants all = topo::costs::kPublished;
    for (std::size_t p = 0; p < device::kProtocols; ++p) {
      for (std::size_t a = 0; a < topo::costs::kAlgorithms; ++a) {
        all.base[a][p] = costs::kHostGraph[p].base;
        for (auto& link : all.hop) link[a][p] = costs::kHostGraph[p].hop;
      }
    }
    return all;
  }();
  return world == device::World::Host ? kHost : topo::costs::kPublished;
}

}  // namespace tutti::comm
