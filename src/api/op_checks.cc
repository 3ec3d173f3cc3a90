#include "api/op_checks.h"

#include "api/caller_values.h"
#include "api/size_checks.h"
#include "comm/enqueue/call_config.h"
#include "comm/enqueue/overlap_checks.h"
#include "comm/enqueue/pointer_checks.h"
#include "comm/lifecycle.h"
#include "comm/reductions.h"
#include "comm/suspension.h"

namespace tutti::api {
namespace {

Status checkRoot(const ncclComm& comm, const comm::Op& op) {
  const int nRanks = comm::commCount(comm);
  if (op.root >= 0 && op.root < nRanks) return {};
  return fail(ncclInvalidArgument, "{} : invalid root {} (root should be in the 0..{} range) ({})",
              comm::apiFuncName(op.func), op.root, nRanks, comm::commName(comm));
}

Status checkRedOp(const ncclComm& comm, const comm::Op& op) {
  const int value = numberIn(op.redOp);
  if (value < 0)
    return fail(ncclInvalidArgument, "{} : invalid reduction operation {} ({})", comm::apiFuncName(op.func), value,
                comm::commName(comm));
  if (value < ncclNumOps || comm::redOpExists(comm, op.redOp)) return {};
  return fail(ncclInvalidArgument, "{} : reduction operation {} unknown to this communicator ({})",
              comm::apiFuncName(op.func), value, comm::commName(comm));
}

/// 0 for what is no communicator: the call will say so.
std::uint64_t idOf(ncclComm_t comm) {
  const ErrorsAsInfo quiet;
  return comm::checkComm(comm, "").ok() ? comm::commHash(*comm) : 0;
}

}  // namespace

Status checkOp(ncclComm_t comm, const comm::Op& op) {
  TRY(checkMovable(comm, comm::apiFuncName(op.func)));
  TRY(comm::checkResident(*comm, comm::apiFuncName(op.func)));
  TRY(checkRoot(*comm, op));
  if (!isType(op.datatype)) {
    return fail(ncclInvalidArgument, "{} : invalid type {} ({})", comm::apiFuncName(op.func), numberIn(op.datatype),
                comm::commName(*comm));
  }
  TRY(checkRedOp(*comm, op));
  TRY(checkOpSize(op, comm::commCount(*comm)));
  TRY(comm::checkOverlap(*comm, op));
  return comm::checkPointers(*comm, op);
}

ncclResult_t run(std::string_view function, ncclComm_t comm, const comm::Op& op,
                 const ncclCollConfig_t* config) noexcept {
  const NvtxRange range(function, [&] { return nvtxCall(op, idOf(comm)); });
  return insideGroup(function, [&]() -> Result<comm::Progress> {
    TRY(checkOp(comm, op));
    comm::Op whole = op;
    if (config != nullptr) TRY(comm::applyCallConfig(*comm, *config, function.substr(4), whole));
    const bool message = op.func == comm::ApiFunc::Send || op.func == comm::ApiFunc::Recv;
    if (op.count == 0 && !message) return comm::Progress::Done;
    return comm::enqueue(*comm, whole);
  });
}

}  // namespace tutti::api
