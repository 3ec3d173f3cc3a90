// What one rank brings to the agreement: its settings, its wishes, and what its links can do.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "comm/agreement/config_differences.h"
#include "comm/plan/message_channels.h"
#include "device/conn_view.h"

namespace tutti::device {
struct Policy;
}

namespace tutti::topo {
struct PeerInfo;
}
namespace tutti::transport {
class Transport;
}

namespace tutti::comm {

struct CommSettings;

/// Settings that shape connections and kernels on both ends. Compared as they work out, not as they were written, and
/// in this order: what others follow from comes first, so that a difference is blamed on its cause. What follows from
/// the network counts only where that is the same.
enum class AgreedSetting : std::uint8_t {
  Kernels,
  LaunchShape,
  BuffSize,
  LlBuffSize,
  Ll128BuffSize,
  NThreads,
  Ll128NThreads,
  P2pLlThreshold,
  PatEnable,
  P2pDisable,
  P2pDirectDisable,
  ShmDisable,
  NetMessageMb,
  NetSharedBuffers,
  P2pNvlChunkSize,
  P2pPciChunkSize,
  P2pNetChunkSize,
  P2pScheduleGroupSize,
  RuntimeConnect,
  CollNetNodeThreshold,
  CollNetIgnoreMismatch,
  CheckCalls,
  Count
};

/// A setting that is text. The hash covers what does not fit.
struct AgreedText {
  std::array<char, 112> text{};  ///< zero terminated
  std::uint64_t hash = 0;
};

/// Of a chunk of PairMethod::InPlace. With more long vectors leave the caches (docs/measurements/network.md).
inline constexpr std::uint8_t kMostStepsInPlace = 2;

/// What this rank's links can do, as far as it can tell alone.
struct LinkAbilities {
  std::uint8_t tree = 1;                          ///< some transport reaches its neighbours in the trees
  std::uint8_t pat = 1;                           ///< the same for PAT's
  std::uint8_t everybody = 1;                     ///< kernels reach those of all ranks: direct algorithms are possible
  std::uint8_t wholeLines = 1;                    ///< its links to all ranks of its node keep 128-byte stores whole
  std::uint8_t stepsInPlace = kMostStepsInPlace;  ///< of a chunk of what two ranks do in place; 0: it cannot
  friend bool operator==(const LinkAbilities&, const LinkAbilities&) = default;
};

/// What one rank brings. Trivially copyable: travels through ControlChannel::allGather as it is.
struct Proposal {
  std::int32_t channels = 1;      ///< wished
  std::uint8_t threadsGiven = 0;  ///< NCCL_NTHREADS is set
  LinkAbilities links;
  MessageLimits messages;  ///< wished
  std::array<std::uint32_t, static_cast<std::size_t>(AgreedSetting::Count)> settings{};
  ComparedOptions options{};  ///< of the configuration
  AgreedText algo;            ///< NCCL_ALGO
  AgreedText proto;           ///< NCCL_PROTO
  AgreedText thresholds;      ///< NCCL_THREAD_THRESHOLDS
  AgreedText network;         ///< the name of the network; empty: none can be used
};

AgreedText agreedText(std::string_view text);

/// The part of a proposal that follows from settings.
Proposal proposalFor(const device::Policy& policy, const std::array<device::SlotBytes, device::kConnKinds>& slotBytes,
                     const CommSettings& settings);

/// The part about messages.
void propose(Proposal& proposal, const MessageLimits& wishes, const MessageSlots& slots);

/// Asks the transports about every rank. `inTrees`: neighbours in trees, ascending. Errors: the driver's.
Result<LinkAbilities> abilitiesOf(std::span<const std::unique_ptr<transport::Transport>> transports,
                                  std::span<const topo::PeerInfo> peers, std::span<const int> inTrees, int rank);

}  // namespace tutti::comm
