#include "comm/init/planning_stage.h"

#include <algorithm>
#include <utility>

#include "bootstrap/bootstrap.h"
#include "comm/agreement/agreement.h"
#include "comm/agreement/wishes.h"
#include "comm/init/graph_stage.h"
#include "comm/init/message_layout.h"
#include "comm/init/own_proposal.h"
#include "comm/init/tuning_wishes.h"
#include "comm/launch/device_pool.h"
#include "comm/plan/plan_context.h"
#include "comm/state/communicator.h"
#include "comm/tuning/model.h"
#include "topo/channels/costs.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {

Result<int> agreeOnPlanning(ncclComm& comm, const CommGraphs& graphs) {
  constexpr auto kMesh = static_cast<std::size_t>(device::ConnKind::Mesh);
  constexpr auto kSimple = static_cast<std::size_t>(device::Protocol::Simple);
  CommParts& parts = comm.parts;
  const int rank = comm.identity.rank;
  ASSIGN(TuningWishes wishes, tuningWishes(comm));
  const device::Policy policy = policyFor(parts.device->driver(), *comm.settings);
  auto slotBytes = slotBytesFor(policy, *comm.settings);
  const MessageSlots slots = ownMessageSlots(comm, slotBytes);
  ASSIGN(const Proposal proposal, ownProposal(comm, graphs, policy, slotBytes, slots));
  ASSIGN(const Agreement agreement, agree(*parts.bootstrap, parts.peers, proposal));
  const auto nChannels = static_cast<unsigned>(agreement.nChannels);
  const topo::AgreedGraphs* const agreed = knownGraphs(graphs);
  const RankFacts ranks = rankFactsFrom(agreement, *parts.layout, parts.peers, agreed);
  slotBytes[kMesh][kSimple] = ranks.path == PathClass::NVLink ? slots.nvl : slots.pci;
  parts.planning->rank = rank;
  parts.planning->messages = agreement.messages;
  for (int r = 0; r < comm.identity.nRanks; ++r) parts.planning->nodes.push_back(parts.layout->nodeOf(r));
  parts.planning->tuning = makeTuning({
      .ranks = ranks,
      .speeds = speedsFrom(agreement, ranks, agreed),
      .nChannels = nChannels,
      .slotBytes = slotBytes,
      .inPlaceStep = slots.net,
      .stepsInPlace = agreement.links.stepsInPlace,
      .policy = agreed != nullptr ? alongGraphs(policy, agreement.nChannels) : policy,
      .threadsGiven = agreement.threadsGiven,
      .thresholds = wishes.thresholds,
      .filter = std::move(wishes.filter),
      .constants = parts.planning->tuning.input.constants,
  });
  layOutMessages(comm, slots);
  logTuning(comm);
  return agreement.nChannels;
}

CollNetShape collNetShape(const ncclComm& comm) {
  constexpr auto kSimple = static_cast<std::size_t>(device::Protocol::Simple);
  const PlanContext& planning = *comm.parts.planning;
  const auto slot = [&](device::ConnKind kind) {
    return planning.tuning.input.slotBytes[static_cast<std::size_t>(kind)][kSimple];
  };
  return {.nChannels = static_cast<int>(usableChannels(planning)),
          .slotBytes = std::min(slot(device::ConnKind::Graph), slot(device::ConnKind::Mesh))};
}

void planWithCollNet(ncclComm& comm, const CommGraphs& graphs, CollNetFacts facts) {
  Tuning& tuning = comm.parts.planning->tuning;
  TuningInput input = std::move(tuning.input);
  facts.directSpeed = facts.chainSpeed = input.speeds.ring;
  if (const topo::AgreedGraphs* const known = knownGraphs(graphs)) {
    const topo::GraphSpeeds speeds = topo::speedsOf(*known);
    facts.directSpeed = speeds.collNetDirect;
    facts.chainSpeed = speeds.collNetChain;
  }
  input.collNet = std::move(facts);
  tuning = makeTuning(std::move(input));
  logTuning(comm);
}

void planWithoutCollNet(ncclComm& comm, std::string why) {
  comm.parts.planning->tuning.input.collNet.why = std::move(why);
}

}  // namespace tutti::comm
