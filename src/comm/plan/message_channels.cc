#include "comm/plan/message_channels.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/log.h"
#include "comm/settings/network_settings.h"

namespace tutti::comm {

namespace {

constexpr int kMost = device::kMaxChannels;

std::uint32_t slotFor(const char* setting, std::uint32_t asked, std::uint32_t graph, std::uint32_t usual) {
  constexpr auto kGrain = static_cast<std::uint32_t>(device::kGrainBytes);
  if (asked == 0) return std::min(graph, usual);
  const std::uint32_t slot = std::min(std::max(asked / kGrain * kGrain, kGrain), graph);
  if (slot != asked) {
    info(kInit | kEnv, "{} {} is no multiple of {} bytes, or more than an eighth of NCCL_BUFFSIZE: using {}", setting,
         asked, kGrain, slot);
  }
  return slot;
}

}  // namespace

int wishedPerNetPeer(int asked, int nNics, double gigabytesPerSecond) {
  constexpr double kChannelBandwidth = 14;
  constexpr int kLeast = 2;
  int wished = asked;
  if (asked <= 0) {
    const double forBandwidth = std::min(std::ceil(gigabytesPerSecond / kChannelBandwidth), double{kMost});
    wished = std::max({kLeast, nNics, static_cast<int>(forBandwidth)});
  }
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::min(wished, kMost))));
}

int wishedPeers(int asked, int nRanks) {
  return asked > 0 ? std::min(asked, nRanks - 1) : nRanks - 1;
}

unsigned channelsForMessages(const MessageLimits& limits, unsigned usual, unsigned all) {
  const unsigned fewest = std::min(static_cast<unsigned>(std::max(limits.fewest, 1)), all);
  return std::max(std::min(std::max(usual, fewest), static_cast<unsigned>(std::max(limits.most, 1))), 1U);
}

unsigned channelsPerPeer(const MessageLimits& limits, unsigned messages, bool sameNode) {
  return sameNode ? messages : std::clamp(static_cast<unsigned>(std::max(limits.perNetPeer, 1)), 1U, messages);
}

ChannelRange peerChannels(unsigned messages, unsigned perPeer, int round) {
  const unsigned lo = static_cast<unsigned>(round) % (messages / perPeer) * perPeer;
  return {lo, lo + perPeer - 1};
}

ChannelRange messageChannels(unsigned messages, unsigned perPeer, int round, unsigned wanted) {
  const unsigned places = messages / perPeer;
  const unsigned turn = static_cast<unsigned>(round) / places % (perPeer / wanted);
  const unsigned lo = peerChannels(messages, perPeer, round).lo + turn * wanted;
  return {lo, lo + wanted - 1};
}

MessageSlots messageSlots(const MessageSettings& settings, std::uint32_t graph, std::uint32_t usual) {
  return {slotFor("NCCL_P2P_NVL_CHUNKSIZE", settings.nvlChunk, graph, usual),
          slotFor("NCCL_P2P_PCI_CHUNKSIZE", settings.pciChunk, graph, usual),
          slotFor("NCCL_P2P_NET_CHUNKSIZE", settings.netChunk, graph, usual)};
}

}  // namespace tutti::comm
