// What is connected when it is first used.
#pragma once

#include <span>

#include "base/status.h"

struct ncclComm;

namespace tutti::comm {

struct LinkRequest;
struct PlanNeeds;

/// Opens those connections of an initialised communicator. Waits for the peers of these to do the same, who may come as
/// late as they like.
/// `needs`: what they are for.
Status connectMissing(ncclComm& comm, const PlanNeeds& needs, std::span<const LinkRequest> missing);

}  // namespace tutti::comm
