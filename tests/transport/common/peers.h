// Facts about ranks for tests of transports.
#pragma once

#include <unistd.h>

#include <cstdio>

#include "gpu/context.h"
#include "topo/machine/peer_info.h"
#include "transport/common/transport.h"

namespace tutti::test {

/// A rank of this process on `device`, as the stages of init would describe it.
inline topo::PeerInfo peerOn(const gpu::Device& device, int rank) {
  topo::PeerInfo info;
  info.rank = rank;
  info.nRanks = 2;
  info.cudaDevice = device.ordinal();
  info.hostHash = 77;
  info.processHash = static_cast<std::uint64_t>(::getpid());
  info.pid = ::getpid();
  info.deviceUuid = device.facts().uuid;
  info.busId = device.facts().busId;
  info.softGpu = device.driver().softGpu ? 1 : 0;
  std::snprintf(info.hostName.data(), info.hostName.size(), "node7");
  return info;
}

/// The same rank as if it lived in another process of the host.
inline topo::PeerInfo elsewhere(topo::PeerInfo info) {
  info.processHash += 1;
  return info;
}

/// Two of three protocols in use: one may be absent.
inline constexpr std::array<std::uint32_t, device::kProtocols> kTestSlots{0, 256, 4096};

inline transport::LinkSpec linkFrom(const topo::PeerInfo& self, const topo::PeerInfo& peer, int channel = 3) {
  return transport::LinkSpec{self, peer, channel, kTestSlots};
}

}  // namespace tutti::test
