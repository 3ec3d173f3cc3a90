// What kernels know of a communicator's collNet, as one image for device memory. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/collnet_view.h"

namespace tutti::topo {
class RankLayout;
}

namespace tutti::comm {

struct CollNetLanes;
struct Rails;

/// Bytes of the image: a CollNetView and the arrays that it points to.
std::size_t collNetTableBytes(const Rails& rails, int nChannels);

/// The image as it is to lie at `address`. `direct`, `chain`: this rank's lanes in the order of CollNetLanes; empty: it
/// heads none.
std::vector<std::byte> collNetTable(const topo::RankLayout& layout, const Rails& rails, const CollNetLanes& lanes,
                                    std::span<const device::CollNetConn> direct,
                                    std::span<const device::CollNetConn> chain, std::uint64_t address);

}  // namespace tutti::comm
