#include "transport/common/link_identity.h"

#include "base/log.h"
#include "transport/common/ranks.h"

namespace tutti::transport {

LinkIdentity identityOf(const LinkSpec& link, device::Direction direction, std::uint32_t magic) {
  return {.magic = magic,
          .direction = direction,
          .bytes = sharedBytes(direction, link.slotBytes),
          .rank = link.self.rank,
          .peerRank = link.peer.rank,
          .channel = link.channel,
          .kind = link.kind,
          .slotBytes = link.slotBytes};
}

Status checkIdentity(std::string_view transport, const LinkSpec& link, const LinkIdentity& self,
                     const LinkIdentity& peer) {
  const bool other = peer.direction != self.direction && peer.rank == self.peerRank && peer.peerRank == self.rank;
  if (peer.magic != self.magic || !other || peer.channel != self.channel || peer.kind != self.kind) {
    return fail(ncclInternalError,
                "{} handle does not belong to channel {} of {}: it is from rank {} for rank {}, channel {}; do all "
                "ranks use the same library and settings?",
                transport, link.channel, pairText(link.self, link.peer), peer.rank, peer.peerRank, peer.channel);
  }
  if (peer.slotBytes != self.slotBytes || peer.bytes != sharedBytes(peer.direction, self.slotBytes)) {
    return fail(ncclInvalidUsage,
                "Buffer sizes differ on channel {} of {}: set NCCL_BUFFSIZE, NCCL_LL_BUFFSIZE and NCCL_LL128_BUFFSIZE "
                "alike on all ranks, and do not mix the software GPU with others",
                link.channel, pairText(link.self, link.peer));
  }
  return {};
}

}  // namespace tutti::transport
