// Messages: two-sided, and one-sided with signals.
#include "api/caller_values.h"
#include "api/op_checks.h"
#include "api/size_checks.h"
#include "comm/lifecycle.h"

using namespace tutti;
using comm::ApiFunc;

TUTTI_API(ncclResult_t, Send,
          (const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
           cudaStream_t stream)) {
  return api::run("ncclSend", comm, {ApiFunc::Send, sendbuff, nullptr, count, datatype, ncclSum, peer, stream});
}

TUTTI_API(ncclResult_t, Recv,
          (void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream)) {
  return api::run("ncclRecv", comm, {ApiFunc::Recv, nullptr, recvbuff, count, datatype, ncclSum, peer, stream});
}

namespace {

Status checkPeer(const ncclComm& comm, std::string_view label, int peer) {
  if (peer >= 0 && peer < comm::commCount(comm)) return {};
  return fail(ncclInvalidArgument, "{} : invalid root {} (root should be in the 0..{} range)", label, peer,
              comm::commCount(comm));
}

Status checkReserved(std::string_view label, int sigIdx, int ctx, unsigned flags) {
  if (sigIdx == 0 && ctx == 0 && flags == 0) return {};
  return fail(ncclInvalidArgument, "{} : signal index {}, context {} and flags {:#x} must all be 0", label, sigIdx, ctx,
              flags);
}

}  // namespace

TUTTI_API(ncclResult_t, PutSignal,
          (const void*, size_t count, ncclDataType_t datatype, int peer, ncclWindow_t peerWin, size_t, int sigIdx,
           int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t)) {
  return api::apiInGroup("ncclPutSignal", [&]() -> Status {
    TRY(api::checkMovable(comm, "PutSignal"));
    TRY(checkPeer(*comm, "PutSignal", peer));
    if (!api::isType(datatype)) {
      return fail(ncclInvalidArgument, "PutSignal : invalid type {}", api::numberIn(datatype));
    }
    TRY(api::checkElements("PutSignal", count, datatype));
    TRY(checkReserved("PutSignal", sigIdx, ctx, flags));
    TRY(api::checkPointer(peerWin, "PutSignal", "peerWin"));
    return api::notYet("ncclPutSignal");
  });
}

TUTTI_API(ncclResult_t, Signal, (int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t)) {
  return api::apiInGroup("ncclSignal", [&]() -> Status {
    TRY(api::checkMovable(comm, "Signal"));
    TRY(checkPeer(*comm, "Signal", peer));
    TRY(checkReserved("Signal", sigIdx, ctx, flags));
    return api::notYet("ncclSignal");
  });
}

TUTTI_API(ncclResult_t, WaitSignal, (int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm, cudaStream_t)) {
  return api::apiInGroup("ncclWaitSignal", [&]() -> Status {
    TRY(api::checkMovable(comm, "WaitSignal"));
    if (nDesc <= 0) return fail(ncclInvalidArgument, "WaitSignal : {} descriptors: pass at least one", nDesc);
    TRY(api::checkPointer(signalDescs, "WaitSignal", "signalDescs"));
    for (int i = 0; i < nDesc; ++i) {
      const ncclWaitSignalDesc_t& wait = signalDescs[i];
      if (wait.opCnt <= 0) {
        return fail(ncclInvalidArgument, "WaitSignal : descriptor {} waits for {} signals: at least one", i,
                    wait.opCnt);
      }
      TRY(checkPeer(*comm, "WaitSignal", wait.peer));
      TRY(checkReserved("WaitSignal", wait.sigIdx, wait.ctx, 0));
    }
    return api::notYet("ncclWaitSignal");
  });
}
