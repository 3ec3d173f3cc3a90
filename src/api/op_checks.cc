#include "api/op_checks.h"

#include "comm/lifecycle.h"
#include "comm/enqueue/pointer_checks.h"

namespace tutti {
namespace {

Status checkRoot(const ncclComm& comm, const Op& op) {
  const int nRanks = commCount(comm);
  if (op.root >= 0 && op.root < nRanks) return {};
  return fail(ncclInvalidArgument, "{} : invalid root {} (root should be in the 0..{} range)", apiFuncName(op.func),
              op.root, nRanks);
}

Status checkRedOp(const ncclComm& comm, const Op& op) {
  const int value = static_cast<int>(op.redOp);
  if (value < 0) return fail(ncclInvalidArgument, "{} : invalid reduction operation {}", apiFuncName(op.func), value);
  if (value < ncclNumOps || redOpExists(comm, op.redOp)) return {};
  return fail(ncclInvalidArgument, "{} : reduction operation {} unknown to this communicator", apiFuncName(op.func),
              value);
}

}  // namespace

Status checkOp(ncclComm_t comm, const Op& op) {
  TRY(checkUsable(comm, apiFuncName(op.func)));
  TRY(checkRoot(*comm, op));
  if (datatypeBytes(op.datatype) == 0) {
    return fail(ncclInvalidArgument, "{} : invalid type {}", apiFuncName(op.func), static_cast<int>(op.datatype));
  }
  TRY(checkRedOp(*comm, op));
  return checkPointers(*comm, op);
}

ncclResult_t run(std::string_view function, ncclComm_t comm, const Op& op) noexcept {
  return apiInGroup(function, [&]() -> Result<Progress> {
    TRY(checkOp(comm, op));
    const bool message = op.func == ApiFunc::Send || op.func == ApiFunc::Recv;
    if (op.count == 0 && !message) return Progress::Done;
    return enqueue(*comm, op);
  });
}

}  // namespace tutti
