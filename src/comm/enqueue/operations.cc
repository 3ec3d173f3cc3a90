#include "comm/enqueue/operations.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/trace.h"
#include "comm/enqueue/comm_work.h"
#include "comm/enqueue/events/call_events.h"
#include "comm/enqueue/events/tracing.h"
#include "comm/enqueue/group.h"
#include "comm/launch/device_pool.h"
#include "comm/state/call_gate.h"
#include "comm/state/communicator.h"
#include "comm/state/lost_peer.h"
#include "comm/state/op_tally.h"
#include "comm/state/red_ops.h"
#include "device/kernels/kernel_name.h"
#include "gpu/capture.h"
#include "gpu/context.h"
#include "topo/machine/peer_info.h"
#include "trace/on.h"

namespace tutti::comm {

namespace {

constexpr int kFp8ComputeCapability = 90;

void logCall(ncclComm& comm, const Op& op) {
  info(kColl,
       "{}: opCount {:x} sendbuff {} recvbuff {} count {} datatype {} op {} root {} comm {} [nranks={}] stream {}",
       apiFuncName(op.func), comm.progress.opCount.load(), fmt::ptr(op.sendbuff), fmt::ptr(op.recvbuff), op.count,
       static_cast<int>(op.datatype), static_cast<int>(op.redOp), op.root, fmt::ptr(&comm), comm.identity.nRanks,
       fmt::ptr(op.stream));
  if (op.tag != 0) info(kColl, "{}: userProfilerTag {:#x}", apiFuncName(op.func), op.tag);
  traceStep(kCall, "nccl{}({:x},{:x},{},{},{},{},{:x},{:x})", apiFuncName(op.func),
            reinterpret_cast<std::uintptr_t>(op.sendbuff), reinterpret_cast<std::uintptr_t>(op.recvbuff), op.count,
            static_cast<int>(op.datatype), static_cast<int>(op.redOp), op.root, reinterpret_cast<std::uintptr_t>(&comm),
            reinterpret_cast<std::uintptr_t>(op.stream));
  if (isPointToPoint(op.func)) {
    traceStep(kP2p, "{}: opCount {:x} rank {} {} rank {} elements {} datatype {}", apiFuncName(op.func),
              comm.progress.opCount.load(), comm.identity.rank, op.func == ApiFunc::Send ? "->" : "<-", op.root,
              op.count, static_cast<int>(op.datatype));
  }
  comm.progress.opCount.fetch_add(1);
}

Status checkFp8(const ncclComm& comm, const Op& op) {
  if (op.datatype != ncclFloat8e4m3 && op.datatype != ncclFloat8e5m2) return {};
  for (const topo::PeerInfo& peer : comm.parts.peers) {
    if (peer.softGpu != 0 || peer.computeCapability >= kFp8ComputeCapability) continue;
    return fail(ncclInvalidArgument,
                "FP8 reduction support begins with sm90 capable devices. rank {} on host {} has "
                "sm{}",
                peer.rank, peer.hostName.data(), peer.computeCapability);
  }
  return {};
}

/// Lets go of the communicator in any case.
class Leaving {
 public:
  explicit Leaving(CommWork& work) : work_(work) {}
  Leaving(const Leaving&) = delete;
  ~Leaving() { work_.leave(); }

 private:
  CommWork& work_;
};

Status scaleAlone(ncclComm& comm, Op op) {
  CommWork& work = workAtOnce();
  const Leaving leaving(work);
  op.func = ApiFunc::AllReduce;
  work.begin(comm);
  work.add(op);
  TRY(work.plan());
  TRY(work.loadKernels());
  return work.launch();
}

Status recordOn(const gpu::Device& device, CUstream stream, CUevent event) {
  ASSIGN(const gpu::CaptureState capture, gpu::captureState(device.driver(), stream));
  if (capture.capturing) return gpu::recordAtReplay(device, capture, stream, event);
  return device.check(device.driver().cuEventRecord(event, stream), "cuEventRecord of a launchCompletionEvent");
}

Status copyAlone(ncclComm& comm, const Op& op) {
  if (op.sendbuff == op.recvbuff && op.launchEvent == nullptr) return {};
  const CallGate::Pass pass(*comm.gate);
  const gpu::Device& device = *comm.parts.device->device;
  ASSIGN(const gpu::ContextGuard context, device.enter());
  if (op.launchEvent != nullptr) TRY(recordOn(device, op.stream, op.launchEvent));
  if (op.sendbuff == op.recvbuff) return {};
  const std::size_t bytes = op.count * device::typeBytes(op.datatype);
  return device.check(device.driver().cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(op.recvbuff),
                                                    reinterpret_cast<CUdeviceptr>(op.sendbuff), bytes, op.stream),
                      "cuMemcpyAsync");
}

/// A lone rank's result is made at once: a copy, unless the operator scales what a rank puts in.
Status runAlone(ncclComm& comm, const Op& op) {
  const bool scales = isReducing(op.func) && op.reduction.op == device::DevOp::PreMulSum;
  return scales ? scaleAlone(comm, op) : copyAlone(comm, op);
}

/// Into the open group, or carried out.
Result<Progress> collect(ncclComm& comm, Op& op, CallEvent& event) {
  if (isReducing(op.func)) {
    ASSIGN(op.reduction, comm.redOps->resolve(op.redOp, op.datatype, comm.identity.nRanks));
    TRY(checkFp8(comm, op));
  }
  comm.tally->called(op, comm.identity.nRanks);
  if (comm.identity.nRanks > 1 || isPointToPoint(op.func)) return addToGroup(comm, op, event);
  TRY(runAlone(comm, op));
  return Progress::Done;
}

}  // namespace

Result<Progress> enqueue(ncclComm& comm, Op op) {
  if (comm.progress.finalized.load()) {
    return fail(ncclInvalidArgument, "{} : the communicator was finalized; only ncclCommDestroy may follow",
                apiFuncName(op.func));
  }
  TRY(comm.lostPeer->need());
  logCall(comm, op);
  if (trace::on()) traceOp(comm, op);
  if (op.count == 0 && !isPointToPoint(op.func)) return Progress::Done;
  CallEvent event(comm, op, groupEvent(), std::max(1, groupDepth()));
  const Result<Progress> result = collect(comm, op, event);
  event.stop();
  if (groupDepth() == 0) groupEvent().stop();  // of a call that nothing was collected of
  return result;
}

}  // namespace tutti::comm
