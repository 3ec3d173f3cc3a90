#include "comm/operations.h"

#include <fmt/format.h>

#include "base/log.h"
#include "comm/communicator.h"
#include "comm/execute.h"
#include "comm/group.h"
#include "comm/group_work.h"
#include "device/kernel_name.h"
#include "gpu/context.h"

namespace tutti {

namespace {

constexpr int kFp8ComputeCapability = 90;

bool isReducing(ApiFunc func) {
  return func == ApiFunc::AllReduce || func == ApiFunc::Reduce || func == ApiFunc::ReduceScatter;
}

bool isPointToPoint(ApiFunc func) { return func == ApiFunc::Send || func == ApiFunc::Recv; }

void logCall(ncclComm& comm, const Op& op) {
  info(kColl, "{}: opCount {:x} sendbuff {} recvbuff {} count {} datatype {} op {} root {} comm {} [nranks={}] stream {}",
       apiFuncName(op.func), comm.progress.opCount.load(), fmt::ptr(op.sendbuff), fmt::ptr(op.recvbuff), op.count,
       static_cast<int>(op.datatype), static_cast<int>(op.redOp), op.root, fmt::ptr(&comm), comm.identity.nRanks,
       fmt::ptr(op.stream));
  comm.progress.opCount.fetch_add(1);
}

Status checkFp8(const ncclComm& comm, const Op& op) {
  if (op.datatype != ncclFloat8e4m3 && op.datatype != ncclFloat8e5m2) return {};
  for (const PeerInfo& peer : comm.parts.peers) {
    if (peer.softGpu != 0 || peer.computeCapability >= kFp8ComputeCapability) continue;
    return fail(ncclInvalidArgument, "FP8 reduction support begins with sm90 capable devices. rank {} on host {} has "
                "sm{}", peer.rank, peer.hostName.data(), peer.computeCapability);
  }
  return {};
}

/// A lone rank's result is made at once: a copy, unless the operator scales what a rank puts in.
Status runAlone(ncclComm& comm, const Op& op) {
  const bool scales = isReducing(op.func) && op.reduction.op == device::DevOp::PreMulSum;
  if (scales) {
    Op scaling = op;
    scaling.func = ApiFunc::AllReduce;
    ASSIGN(PlannedComm planned, planComm(comm, {&scaling, 1}));
    TRY(loadKernels(planned));
    return launchPlanned(planned);
  }
  if (op.sendbuff == op.recvbuff) return {};
  const Device& device = *comm.parts.device->device;
  ASSIGN(const ContextGuard context, device.enter());
  const std::size_t bytes = op.count * device::typeBytes(op.datatype);
  return device.check(device.driver().cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(op.recvbuff),
                                                    reinterpret_cast<CUdeviceptr>(op.sendbuff), bytes, op.stream),
                      "cuMemcpyAsync");
}

/// Into the open group of this thread.
Status collect(ncclComm& comm, Op op) {
  if (comm.progress.finalized.load()) {
    return fail(ncclInvalidArgument, "{} : the communicator was finalized; only ncclCommDestroy may follow",
                apiFuncName(op.func));
  }
  logCall(comm, op);
  if (op.count == 0 && !isPointToPoint(op.func)) return {};
  if (isReducing(op.func)) {
    ASSIGN(op.reduction, comm.redOps.resolve(op.redOp, op.datatype, comm.identity.nRanks));
    TRY(checkFp8(comm, op));
  }
  if (comm.identity.nRanks == 1 && !isPointToPoint(op.func)) {
    const CallGate::Pass pass(comm.gate);
    return runAlone(comm, op);
  }
  return openGroup()->add(comm, op);
}

}  // namespace

std::string_view apiFuncName(ApiFunc func) {
  switch (func) {
    case ApiFunc::AllReduce: return "AllReduce";
    case ApiFunc::Reduce: return "Reduce";
    case ApiFunc::Broadcast: return "Broadcast";
    case ApiFunc::AllGather: return "AllGather";
    case ApiFunc::ReduceScatter: return "ReduceScatter";
    case ApiFunc::Send: return "Send";
    case ApiFunc::Recv: return "Recv";
    case ApiFunc::AlltoAll: return "AlltoAll";
    case ApiFunc::Gather: return "Gather";
    case ApiFunc::Scatter: return "Scatter";
  }
  return "?";
}

std::size_t datatypeBytes(ncclDataType_t type) { return device::typeBytes(type); }

Result<Progress> enqueue(ncclComm& comm, const Op& op) {
  groupStart();
  const Status collected = collect(comm, op);
  const bool outermost = groupDepth() == 1;
  if (outermost) latchGroupError(collected);
  Result<Progress> ended = groupEnd();
  if (!collected.ok()) return collected;
  return ended;
}

}  // namespace tutti
