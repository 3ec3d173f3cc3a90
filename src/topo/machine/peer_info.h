// Plain facts about one rank, gathered from all ranks at init; the only thing transports know of their peers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/socket/address.h"

namespace tutti::topo {

/// Trivially copyable: travels through ControlChannel::allGather as it is.
struct PeerInfo {
  std::int32_t rank = -1;
  std::int32_t version = 0;       ///< NCCL_VERSION_CODE of the library
  std::int32_t nRanks = 0;        ///< as this rank was told
  std::int32_t cudaDevice = -1;   ///< ordinal in its own process
  std::uint64_t hostHash = 0;     ///< equal on ranks of one host
  std::uint64_t processHash = 0;  ///< equal on ranks of one process (pid and pid namespace)
  std::int32_t pid = 0;
  std::int32_t computeCapability = 0;  ///< major * 10 + minor
  std::array<std::uint8_t, 16> deviceUuid{};
  std::int64_t busId = 0;              ///< PCI bus id as 0xDDDDBBDDF packed digits
  std::array<char, 64> hostName{};     ///< zero terminated, for messages
  std::uint32_t softGpu = 0;           ///< 1 on the software GPU
  std::int32_t nvmlDevice = -1;        ///< number that nvidia-smi gives the device, -1: unknown
  std::uint64_t networkNamespace = 0;  ///< equal on ranks of a host that share a network namespace; 0: unknown
  std::uint32_t bootIdUnknown = 0;     ///< 1: hostHash may differ from that of other ranks of this host
  std::int32_t familyRank = -1;        ///< in the family whose connections it would share; -1: it shares none
  std::int32_t collNetDevices = -1;    ///< of its collNet plugin, 0: it has none; -1: CollNet is not enabled
  std::uint32_t traced = 0;            ///< 1: its process writes a trace
  std::uint64_t machineHash = 0;       ///< of what the rank knows of its host's hardware; 0: nothing
  Address rasAddress;                  ///< where its process is asked about the job; unset: it is not
  std::uint32_t zero = 0;
  std::array<std::byte, 32> rasKey{};  ///< with which, masked by a key of the communicator
};

}  // namespace tutti::topo
