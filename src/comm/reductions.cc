#include "comm/reductions.h"

#include "comm/state/communicator.h"
#include "comm/state/red_ops.h"

namespace tutti::comm {

Result<ncclRedOp_t> createPreMulSum(ncclComm& comm, const void* scalar, ncclDataType_t type,
                                    ncclScalarResidence_t residence) {
  return comm.redOps->create(scalar, type, residence);
}

Status destroyRedOp(ncclComm& comm, ncclRedOp_t op) {
  return comm.redOps->destroy(op);
}

bool redOpExists(const ncclComm& comm, ncclRedOp_t op) {
  return comm.redOps->exists(op);
}

}  // namespace tutti::comm
