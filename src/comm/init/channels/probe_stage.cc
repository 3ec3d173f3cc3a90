#include "comm/init/channels/probe_stage.h"

#include "comm/diagnosis/call_exchange.h"
#include "comm/diagnosis/stalls.h"
#include "comm/launch/device_pool.h"
#include "comm/state/communicator.h"
#include "topo/machine/peer_info.h"

namespace tutti::comm {

namespace {

StallSubject stallSubject(ncclComm& comm) {
  const CommParts& parts = comm.parts;
  return {.rank = comm.identity.rank,
          .nRanks = comm.identity.nRanks,
          .who = describeComm(comm),
          .device = *parts.device->device,
          .bootstrap = *parts.bootstrap,
          .channels = *parts.channels,
          .launcher = *parts.launcher,
          .relays = parts.relays.get(),
          .peers = parts.peers,
          .calls = comm.calls->log(),
          .board = *comm.stalls,
          .connecting = comm.progress.connecting,
          .awaited = *comm.progress.awaited,
          .collNet = [&comm] { return comm.parts.collNetTask(); }};
}

}  // namespace

Status makeStallProbe(ncclComm& comm) {
  ASSIGN(comm.parts.stalls, StallProbe::create(stallSubject(comm), comm.options.stall));
  return {};
}

}  // namespace tutti::comm
