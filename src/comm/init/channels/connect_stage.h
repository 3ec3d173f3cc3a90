// The stage of init that connects the rings; all connections again after a while without.
#pragma once

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

struct CollNetLanes;
struct ConnectContext;
struct PlanNeeds;

/// Collective. Connects the neighbours of all rings, and waits until all ranks have; whatever else
/// is needed is connected when it is first used, or here, as far as collectives may use it, with
/// NCCL_RUNTIME_CONNECT=0.
Status connectRings(ncclComm& comm);

/// Tells kernels of CommParts::collNet, and the planner's plans which links inside the node it takes. Collective with
/// NCCL_RUNTIME_CONNECT=0, which opens them at once.
Status connectCollNet(ncclComm& comm, const CollNetLanes& lanes);

/// What connectLinks() needs of an initialised communicator.
ConnectContext connectContext(const ncclComm& comm);

/// Says at INFO which structures those needs have connected.
void sayConnected(const PlanNeeds& needs);

/// Says at INFO what it holds for as long as it lives, or until more is connected.
void logConnections(const ncclComm& comm);

/// Collective. Opens all connections again that ChannelSet::close() has closed; the transports are new.
Status reconnectAll(ncclComm& comm);

}  // namespace tutti::comm
