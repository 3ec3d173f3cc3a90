// What this rank brings to the agreement on planning.
#pragma once

#include <array>

#include "base/status.h"
#include "device/conn_view.h"

struct ncclComm;

namespace tutti::device {
struct Policy;
}

namespace tutti::comm {

struct CommGraphs;
struct MessageSlots;
struct Proposal;

/// With the slots that this rank would have. Errors: the driver's, asked what the links can do.
Result<Proposal> ownProposal(const ncclComm& comm, const CommGraphs& graphs, const device::Policy& policy,
                             const std::array<device::SlotBytes, device::kConnKinds>& slotBytes,
                             const MessageSlots& slots);

}  // namespace tutti::comm
