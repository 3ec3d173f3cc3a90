// The planner: what a group asked of one communicator -> kernels to launch and peers to connect. A pure function; no
// rank sees what the others were asked, so every choice below rests on values that are equal on all ranks concerned.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/connect.h"
#include "comm/message_channels.h"
#include "comm/operations.h"
#include "comm/tuning.h"
#include "device/policy.h"
#include "device/work.h"

namespace tutti {

/// Facts about the communicator that the planner needs. Equal on all ranks but for `rank`.
struct PlanContext {
  int rank = 0;
  Tuning tuning;
  MessageLimits messages;
  std::vector<int> nodes;  ///< number of each rank's node; empty: all are on one
  int mostPerGroup = 8;    ///< ranks of a group in the order of messages, see MessageSchedule

  int nRanks() const { return tuning.input.ranks.nRanks; }
  unsigned nChannels() const { return tuning.input.nChannels; }
  const device::Policy& policy() const { return tuning.input.policy; }
  std::uint32_t slotBytesOf(device::ConnKind kind, device::Protocol protocol) const {
    return tuning.input.slotBytes[static_cast<std::size_t>(kind)][static_cast<std::size_t>(protocol)];
  }
};

/// One kernel: its name's parts, its shape, and its works (`colls` or, for Func::SendRecv, `messages`).
struct PlannedLaunch {
  device::Func func = device::Func::AllReduce;
  device::Algorithm algorithm = device::Algorithm::Ring;
  device::Protocol protocol = device::Protocol::Simple;
  device::DevOp op = device::DevOp::Sum;  ///< Sum, or that of one of the works
  ncclDataType_t type = ncclInt8;     ///< of the kernel: ncclInt8 for everything that only moves bytes
  unsigned firstChannel = 0;
  unsigned nChannels = 1;             ///< blocks
  unsigned nThreads = 1;              ///< per block
  double latencyUs = 0;               ///< estimate: of the slowest work, whatever its size
  double transferUs = 0;              ///< estimate: what the bytes of all works add to that
  std::vector<device::CollWork> colls;
  std::vector<device::P2pWork> messages;

  std::size_t nWorks() const { return colls.size() + messages.size(); }
};

/// What was decided for one collective, for the log.
struct Decision {
  Request request;
  Choice choice;
  unsigned channelLo = 0;
  unsigned channelHi = 0;
};

/// A rank that messages go to or come from, and the channels that such messages may use: more than these use as yet, so
/// that both ends open the same ones whatever comes first.
struct MessagePeer {
  int rank = -1;
  ChannelMask channels = ~ChannelMask{0};   ///< those above the communicator's do not count
  friend bool operator==(const MessagePeer&, const MessagePeer&) = default;
};

/// Everything to be done for one group.
struct Plan {
  std::vector<PlannedLaunch> launches;      ///< in this order, all on one stream
  std::vector<CUstream_st*> streams;        ///< the application's, without repetition, in order of appearance
  std::vector<MessagePeer> sendPeers;       ///< ranks that get messages from us, ascending, without ourselves
  std::vector<MessagePeer> recvPeers;       ///< ranks we get messages from, ascending, without ourselves
  bool usesRing = false;                    ///< some launch goes round the ring: it must be connected
  bool usesTree = false;                    ///< the same for the trees
  bool usesPat = false;                     ///< the same for the neighbours in PAT
  std::vector<int> meshPeers;               ///< ranks that direct algorithms exchange data with, both ways, ascending
  std::vector<Decision> decisions;          ///< one for each collective that is carried out, in call order

  /// Estimate for the whole group: launches run one after another. -1 where nothing is to be done.
  double microseconds() const;
};

/// Plans `ops` in call order: first the collectives, those that share a kernel in one launch, spread over the channels;
/// then all messages. Collectives without elements are left out; messages without content are not. ncclInvalidUsage: a
/// message to oneself without its other half, or a collective that no allowed algorithm and protocol can do.
Result<Plan> makePlan(const PlanContext& context, std::span<const Op> ops);

/// Tells the TUNING log what was weighed and chosen. Prints nothing, and costs nothing, where that log is off.
void logDecisions(const PlanContext& context, const Plan& plan);

/// A plan as text, one line for each launch and each of its works: for tests and for people.
std::string describePlan(const Plan& plan);

}  // namespace tutti
