#include "api/op_checks.h"

#include <cstring>

#include "api/size_checks.h"
#include "comm/enqueue/call_config.h"
#include "comm/enqueue/overlap_checks.h"
#include "comm/enqueue/pointer_checks.h"
#include "comm/lifecycle.h"
#include "comm/suspension.h"

namespace tutti::api {
namespace {

Status checkRoot(const ncclComm& comm, const comm::Op& op) {
  const int nRanks = comm::commCount(comm);
  if (op.root >= 0 && op.root < nRanks) return {};
  return fail(ncclInvalidArgument, "{} : invalid root {} (root should be in the 0..{} range) ({})",
              comm::apiFuncName(op.func), op.root, nRanks, comm::commName(comm));
}

/// What a caller in C has put there, which need not be a value of the enumeration.
template <class Enumeration>
int numberIn(const Enumeration& place) {
  int number = 0;
  static_assert(sizeof(number) == sizeof(place));
  std::memcpy(&number, &place, sizeof(number));
  return number;
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

}  // namespace

Status checkOp(ncclComm_t comm, const comm::Op& op) {
  TRY(checkMovable(comm, comm::apiFuncName(op.func)));
  TRY(comm::checkResident(*comm, comm::apiFuncName(op.func)));
  TRY(checkRoot(*comm, op));
  const int type = numberIn(op.datatype);
  if (type < 0 || type >= ncclNumTypes || comm::datatypeBytes(op.datatype) == 0) {
    return fail(ncclInvalidArgument, "{} : invalid type {} ({})", comm::apiFuncName(op.func), type,
                comm::commName(*comm));
  }
  TRY(checkRedOp(*comm, op));
  TRY(checkOpSize(op, comm::commCount(*comm)));
  TRY(comm::checkOverlap(*comm, op));
  return comm::checkPointers(*comm, op);
}

ncclResult_t run(std::string_view function, ncclComm_t comm, const comm::Op& op,
                 const ncclCollConfig_t* config) noexcept {
  return apiInGroup(function, [&]() -> Result<comm::Progress> {
    TRY(checkOp(comm, op));
    comm::Op whole = op;
    if (config != nullptr) TRY(comm::applyCallConfig(*comm, *config, function.substr(4), whole));
    const bool message = op.func == comm::ApiFunc::Send || op.func == comm::ApiFunc::Recv;
    if (op.count == 0 && !message) return comm::Progress::Done;
    return comm::enqueue(*comm, whole);
  });
}

}  // namespace tutti::api
