// What the environment says of one rank's messages, as plain values.
#pragma once

#include <cstdint>

namespace tutti::comm {

/// What the environment says of one rank's messages.
struct MessageSettings {
  int fewest = 1;              ///< NCCL_MIN_P2P_NCHANNELS
  int most = 64;               ///< NCCL_MAX_P2P_NCHANNELS
  std::uint32_t nvlChunk = 0;  ///< NCCL_P2P_NVL_CHUNKSIZE, bytes; 0: what suits the world; the same for the others
  std::uint32_t pciChunk = 0;  ///< NCCL_P2P_PCI_CHUNKSIZE
  std::uint32_t netChunk = 0;  ///< NCCL_P2P_NET_CHUNKSIZE
  int mostPerGroup = 8;        ///< NCCL_P2P_SCHEDULE_GROUP_SIZE, see MessageSchedule
};

}  // namespace tutti::comm
