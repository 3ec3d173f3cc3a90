// How a communicator leaves its family, whose connections may stay.
#pragma once

struct ncclComm;

namespace tutti::comm {

/// The connections of its family go with the last of its members. Where a peer is gone, or the family has failed, their
/// memory is left to whoever may still write to it, as after any failure. Whether they go now, in peace.
bool leaveFamily(const ncclComm& comm);

/// Of one that graphs have kept and that is about to be freed: whether its family's connections stay. What it has sent
/// over them is to go then.
bool outlivedByFamily(const ncclComm& comm);

}  // namespace tutti::comm
