#include "comm/network/gpu_direct.h"

#include "comm/settings/network_settings.h"
#include "plugin/network/net.h"
#include "topo/machine/path_settings.h"

namespace tutti::comm {

namespace {

bool has(const plugin::NetProperties& device, plugin::PtrKind kind) {
  return (device.ptrSupport & static_cast<int>(kind)) != 0;
}

/// Without a description of the machine. What a software GPU's process can do takes no NIC near by, but settings that
/// keep GPUs and NICs apart, or forbid reading, mean it, too.
bool usableUnseen(const GpuDirectQuestion& question, const GpuDirectSettings& settings) {
  if (!question.softGpu) return false;
  const bool near = settings.level.value_or(topo::PathType::P2c) >= topo::PathType::Pix;
  return near && (question.direction == device::Direction::Recv || settings.read != 0);
}

bool usable(const GpuDirectQuestion& question, const GpuDirectSettings& settings) {
  if (!takesGpuMemory(question.device, question.dmaBufs)) return false;
  if (!question.access) return usableUnseen(question, settings);
  return question.direction == device::Direction::Send ? question.access->reads : question.access->writes;
}

bool mustFlush(const GpuDirectQuestion& question, const GpuDirectSettings& settings) {
  constexpr int kOrdered = 90;  // from here on counters do not overtake data that took the same way
  if (question.direction == device::Direction::Send || settings.neverFlush) return false;
  if (question.device.forceFlush || settings.alwaysFlush || question.computeCapability < kOrdered) return true;
  return question.access && question.access->apartFromCpu;
}

}  // namespace

bool takesGpuMemory(const plugin::NetProperties& device, bool dmaBufs) {
  return has(device, plugin::PtrKind::Cuda) || (dmaBufs && has(device, plugin::PtrKind::DmaBuf));
}

net::SlotPlace slotPlaceFor(const GpuDirectQuestion& question, const GpuDirectSettings& settings) {
  net::SlotPlace place;
  place.onDevice = usable(question, settings);
  place.dmaBuf = place.onDevice && question.dmaBufs && has(question.device, plugin::PtrKind::DmaBuf);
  place.orAddress = place.dmaBuf && has(question.device, plugin::PtrKind::Cuda);
  place.flushes = place.onDevice && mustFlush(question, settings);
  return place;
}

}  // namespace tutti::comm
