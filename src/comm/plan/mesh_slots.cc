#include "comm/plan/mesh_slots.h"

#include <algorithm>

#include "base/log.h"
#include "comm/settings/comm_settings.h"
#include "device/policy.h"
#include "transport/net/endpoint/end_layout.h"
#include "transport/net/lane/slot_store.h"

namespace tutti::comm {

namespace {

std::uint64_t meshEnds(int peers, int perPeer) {
  return 2 * static_cast<std::uint64_t>(peers) * static_cast<std::uint64_t>(perPeer);
}

}  // namespace

std::uint64_t meshEndBytes(const device::SlotBytes& slots) {
  return net::endLayout(slots, device::Direction::Recv, false).bytes;
}

std::uint64_t sharedMeshEndBytes(const device::SlotBytes& slots) {
  return net::endLayout(slots, device::Direction::Recv, true).bytes;
}

std::uint64_t meshBytesOf(const device::SlotBytes& slots, const MeshWorld& world, std::uint32_t sharedSlots) {
  const std::uint64_t ends = meshEnds(world.peers, world.perPeer);
  if (sharedSlots == 0) return ends * meshEndBytes(slots);
  const std::uint64_t pool = net::sharedPoolBytes({sharedSlots, slots[2], false});
  return ends * sharedMeshEndBytes(slots) + 2 * static_cast<std::uint64_t>(world.nChannels) * pool;
}

device::SlotBytes sharedMeshSlots(const device::SlotBytes& mesh, const MeshWorld& world, std::uint64_t most) {
  constexpr std::uint32_t kLeastLl = 2 << 10, kMostLl = 16 << 10;
  constexpr auto kGrain = static_cast<std::uint32_t>(2 * device::kGrainBytes);
  const std::uint64_t wanted = std::clamp<std::uint64_t>(2 * world.llMessageBytes / kGrain * kGrain, kLeastLl, kMostLl);
  device::SlotBytes slots{std::min(mesh[0], static_cast<std::uint32_t>(wanted)), 0, mesh[2]};
  while (slots[0] / 2 >= kLeastLl && meshEnds(world.peers, world.perPeer) * sharedMeshEndBytes(slots) > most / 16) {
    slots[0] = slots[0] / 2 / kGrain * kGrain;
  }
  return slots;
}

device::SlotBytes networkMeshSlots(const device::SlotBytes& mesh, int peers, int perPeer, std::uint64_t most) {
  // A message of a few KB still takes one slot; smaller ones would save little beside LL's.
  constexpr device::SlotBytes kLeast{2 << 10, 0, 8 << 10};
  const std::uint64_t ends = meshEnds(peers, perPeer);
  device::SlotBytes slots = mesh;
  for (bool smaller = true; smaller && ends * meshEndBytes(slots) > most;) {
    smaller = false;
    for (const std::size_t p : {std::size_t{0}, std::size_t{2}}) {
      // Both protocols' slots consist of whole grains.
      const auto grain = static_cast<std::uint32_t>((p == 0 ? 2 : 1) * device::kGrainBytes);
      if (slots[p] / 2 < kLeast[p]) continue;
      slots[p] = slots[p] / 2 / grain * grain;
      smaller = true;
    }
  }
  return slots;
}

bool takesLongSteps(const CommSettings& settings, const device::Policy& policy, bool inPlace) {
  constexpr auto kSimple = static_cast<std::size_t>(device::Protocol::Simple);
  const std::uint32_t asked = settings.buffers.simple / static_cast<std::uint32_t>(device::kSteps);
  const bool smaller = settings.buffers.simple != 0 && asked < policy.meshSlotBytes[kSimple];
  return inPlace && settings.netSharedSlots != 0 && settings.messages.netChunk == 0 && !smaller;
}

std::uint32_t netMessageStep(std::uint32_t slot, const CommSettings& settings, bool longSteps) {
  if (settings.netSharedSlots == 0 || settings.messages.netChunk != 0) return slot;
  return longSteps ? kUsualStepInPlace : std::min(slot, kUsualSharedSlot);
}

std::uint32_t sharedNetSlots(const CommSettings& settings, bool longSteps) {
  if (!longSteps) return settings.netSharedSlots;
  return std::max(settings.netSharedSlots * kUsualSharedSlot / kUsualStepInPlace, std::uint32_t{1});
}

device::SlotBytes chooseMeshSlots(const device::SlotBytes& mesh, const MeshWorld& world, const CommSettings& settings) {
  const std::uint64_t most = std::uint64_t{settings.netMessageMb} << 20;
  if (settings.netSharedSlots == 0) return networkMeshSlots(mesh, world.peers, world.perPeer, most);
  return sharedMeshSlots(mesh, world, most);
}

void logMeshSlots(const device::SlotBytes& slots, const device::SlotBytes& mesh, const MeshWorld& world,
                  const CommSettings& settings, std::uint32_t shared) {
  if (shared != 0) {
    info(kInit | kNet,
         "connections for messages over the network share {} slots of {} KB per channel and direction: with an end to "
         "and from each of {} peers on {} channels a rank takes {} KB (NCCL_NET_SHARED_BUFFERS)",
         shared, slots[2] >> 10, world.peers, world.perPeer, meshBytesOf(slots, world, shared) >> 10);
  } else if (slots != mesh) {
    info(kInit | kNet,
         "{} peers on {} channels: an end of a connection for messages over the network takes {} KB instead of {} "
         "(TUTTI_NET_MESSAGE_MB={}, NCCL_P2P_MAX_PEERS)",
         world.peers, world.perPeer, meshEndBytes(slots) >> 10, meshEndBytes(mesh) >> 10, settings.netMessageMb);
  }
}

}  // namespace tutti::comm
