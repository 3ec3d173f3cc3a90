#include "comm/collnet/slot_places.h"

#include <cstddef>
#include <vector>

#include "comm/network/gpu_direct.h"
#include "comm/network/network.h"
#include "comm/network/nics.h"
#include "comm/settings/comm_settings.h"
#include "topo/machine/peer_info.h"

namespace tutti::comm {

SlotPlaces slotPlacesAt(int nic, const CommNetwork& network, const topo::PeerInfo& self, const CommSettings& settings) {
  const std::vector<plugin::NetProperties>& devices = network.devices();
  if (nic < 0 || static_cast<std::size_t>(nic) >= devices.size()) return {};
  const auto placeOf = [&](device::Direction direction) {
    return slotPlaceFor({.device = devices[static_cast<std::size_t>(nic)],
                         .access = accessTo(network.nics(), nic),
                         .direction = direction,
                         .computeCapability = self.computeCapability,
                         .softGpu = self.softGpu != 0,
                         .dmaBufs = network.dmaBufs()},
                        settings.gpuDirect);
  };
  const SlotPlaces places{placeOf(device::Direction::Send), placeOf(device::Direction::Recv)};
  return places.send.onDevice && places.recv.onDevice ? places : SlotPlaces{};
}

}  // namespace tutti::comm
