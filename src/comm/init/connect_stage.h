// The stage of init that connects the rings, and what is connected later.
#pragma once

#include <span>

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

struct CollNetLanes;
struct LinkRequest;
struct PlanNeeds;

/// Collective. Connects the neighbours of all rings, and waits until all ranks have; whatever else
/// is needed is connected when it is first used, or here, as far as collectives may use it, with
/// NCCL_RUNTIME_CONNECT=0.
Status connectRings(ncclComm& comm);

/// Tells kernels of CommParts::collNet, and the planner's plans which links inside the node it takes. Collective with
/// NCCL_RUNTIME_CONNECT=0, which opens them at once.
Status connectCollNet(ncclComm& comm, const CollNetLanes& lanes);

/// Opens those connections of an initialised communicator. Waits for the peers of these to do the same, who may come as
/// late as they like.
/// `needs`: what they are for.
Status connectMissing(ncclComm& comm, const PlanNeeds& needs, std::span<const LinkRequest> missing);

/// Says at INFO what it holds for as long as it lives, or until more is connected.
void logConnections(const ncclComm& comm);

/// Collective. Opens all connections again that ChannelSet::close() has closed; the transports are new.
Status reconnectAll(ncclComm& comm);

}  // namespace tutti::comm
