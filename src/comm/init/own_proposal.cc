#include "comm/init/own_proposal.h"

#include <algorithm>
#include <vector>

#include "comm/agreement/proposal.h"
#include "comm/agreement/wishes.h"
#include "comm/init/graph_stage.h"
#include "comm/init/message_layout.h"
#include "comm/init/transports/message_steps.h"
#include "comm/launch/device_pool.h"
#include "comm/network/network.h"
#include "comm/settings/comm_settings.h"
#include "comm/state/communicator.h"
#include "comm/state/membership.h"
#include "gpu/context.h"
#include "topo/channels/channel_limits.h"
#include "topo/machine/peer_info.h"

namespace tutti::comm {

namespace {

int channelsOfItsOwn(const ncclComm& comm, const device::Policy& policy, const CommGraphs& graphs) {
  const CommParts& parts = comm.parts;
  const topo::PeerInfo& self = parts.peers[static_cast<std::size_t>(comm.identity.rank)];
  int wished = wishedChannels(policy, comm.config, *comm.settings);
  if (knownGraphs(graphs) != nullptr) {
    wished = channelsOfGraphs(comm, graphs, channelLimits(comm.config, *comm.settings));
  }
  if (self.softGpu != 0) return wished;
  return channelsThatFit(wished, parts.device->device->facts().multiprocessors, parts.peers, self);
}

/// The channels that this rank would take if others did not wish for less. Who shares with its parent has no more.
int channelsWished(const ncclComm& comm, const device::Policy& policy, const CommGraphs& graphs) {
  const int wished = channelsOfItsOwn(comm, policy, graphs);
  return comm.membership->mostChannels > 0 ? std::min(wished, comm.membership->mostChannels) : wished;
}

}  // namespace

Result<Proposal> ownProposal(const ncclComm& comm, const CommGraphs& graphs, const device::Policy& policy,
                             const std::array<device::SlotBytes, device::kConnKinds>& slotBytes,
                             const MessageSlots& slots) {
  const CommParts& parts = comm.parts;
  Proposal proposal = proposalFor(policy, slotBytes, *comm.settings);
  proposal.options = comparedOptions(comm.config.values);
  proposal.channels = channelsWished(comm, policy, graphs);
  propose(proposal, messageWishes(comm), slots);
  if (parts.network) proposal.network = agreedText(parts.network->net().name());
  const std::vector<int> inTrees = treeNeighbours(comm, graphs, proposal.channels);
  ASSIGN(proposal.links, abilitiesOf(parts.transports, parts.peers, inTrees, comm.identity.rank));
  proposal.links.stepsInPlace = stepsInPlace(comm);
  return proposal;
}

}  // namespace tutti::comm
