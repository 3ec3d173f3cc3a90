// Memory, its registration, and reduction operators.
#include "comm/memory.h"
#include "api/boundary.h"
#include "api/caller_values.h"
#include "api/size_checks.h"
#include "comm/library.h"
#include "comm/lifecycle.h"
#include "comm/reductions.h"
#include "comm/registration.h"
#include "comm/state/revocation.h"

using namespace tutti;

TUTTI_API(ncclResult_t, MemAlloc, (void** ptr, size_t size)) {
  return api::api("ncclMemAlloc", [&]() -> Status {
    TRY(comm::startLibrary());
    if (ptr == nullptr) return fail(ncclUnhandledCudaError, "MemAlloc : ptr argument is NULL");
    TRY(api::checkBytes("MemAlloc", size));
    if (size > 0) return comm::memAlloc(ptr, size);
    *ptr = nullptr;
    return {};
  });
}

TUTTI_API(ncclResult_t, MemFree, (void* ptr)) {
  return api::api("ncclMemFree", [&]() -> Status {
    TRY(comm::startLibrary());
    return ptr == nullptr ? Status() : comm::memFree(ptr);
  });
}

TUTTI_API(ncclResult_t, CommRegister, (const ncclComm_t comm, void* buff, size_t size, void** handle)) {
  return api::api("ncclCommRegister", [&]() -> Status {
    TRY(api::checkPointer(handle, "CommRegister", "handle"));
    *handle = nullptr;
    if (!comm::registersBuffers()) return {};
    TRY(api::checkMovable(comm, "CommRegister"));
    TRY(api::checkBytes("CommRegister", size));
    ASSIGN(*handle, comm::registerBuffer(*comm, buff, size));
    return {};
  });
}

TUTTI_API(ncclResult_t, CommDeregister, (const ncclComm_t comm, void* handle)) {
  if (handle == nullptr) return ncclSuccess;
  return api::api("ncclCommDeregister", [&]() -> Status {
    TRY(comm::checkComm(comm, "CommDeregister"));
    return comm::deregisterBuffer(*comm, handle);
  });
}

// Without symmetric memory a window is NULL and the call succeeds: callers are told to test for it.
TUTTI_API(ncclResult_t, CommWindowRegister, (ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int)) {
  return api::apiInGroup("ncclCommWindowRegister", [&]() -> Status {
    TRY(comm::checkComm(comm, "CommWindowRegister"));
    TRY(api::checkPointer(win, "CommWindowRegister", "win"));
    *win = nullptr;
    TRY(comm::checkNotRevoked(*comm, "CommWindowRegister"));
    TRY(comm::checkReady(*comm, "CommWindowRegister"));
    TRY(api::checkPointer(buff, "CommWindowRegister", "buff"));
    if (size == 0) return fail(ncclInvalidArgument, "CommWindowRegister : size is 0");
    return api::checkBytes("CommWindowRegister", size);
  });
}

TUTTI_API(ncclResult_t, CommWindowDeregister, (ncclComm_t comm, ncclWindow_t win)) {
  return api::apiInGroup("ncclCommWindowDeregister", [&]() -> Status {
    TRY(comm::checkComm(comm, "CommWindowDeregister"));
    if (win == nullptr) return {};
    return fail(ncclInvalidArgument, "CommWindowDeregister : unknown window {}", static_cast<const void*>(win));
  });
}

TUTTI_API(ncclResult_t, WinGetUserPtr, (ncclComm_t comm, ncclWindow_t, void** outUserPtr)) {
  return api::api("ncclWinGetUserPtr", [&]() -> Status {
    TRY(comm::checkComm(comm, "WinGetUserPtr"));
    TRY(api::checkPointer(outUserPtr, "WinGetUserPtr", "outUserPtr"));
    *outUserPtr = nullptr;
    return {};
  });
}

TUTTI_API(ncclResult_t, RedOpCreatePreMulSum,
          (ncclRedOp_t * op, void* scalar, ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm)) {
  return api::apiInGroup("ncclRedOpCreatePreMulSum", [&]() -> Status {
    TRY(api::checkUsable(comm, "RedOpCreatePreMulSum"));
    TRY(api::checkPointer(op, "RedOpCreatePreMulSum", "op"));
    TRY(api::checkPointer(scalar, "RedOpCreatePreMulSum", "scalar"));
    const int where = api::numberIn(residence);
    if (where != ncclScalarDevice && where != ncclScalarHostImmediate) {
      return fail(ncclInvalidArgument, "RedOpCreatePreMulSum : invalid residence {} of the scalar", where);
    }
    if (!api::isType(datatype)) {
      return fail(where == ncclScalarDevice ? ncclInvalidArgument : ncclInternalError,
                  "RedOpCreatePreMulSum : invalid type {}", api::numberIn(datatype));
    }
    ASSIGN(*op, comm::createPreMulSum(*comm, scalar, datatype, residence));
    return {};
  });
}

TUTTI_API(ncclResult_t, RedOpDestroy, (ncclRedOp_t op, ncclComm_t comm)) {
  return api::apiInGroup("ncclRedOpDestroy", [&]() -> Status {
    const int value = api::numberIn(op);
    if (value >= 0 && value < ncclNumOps) {
      return fail(ncclInvalidArgument, "RedOpDestroy : operator {} is built in and cannot be destroyed", value);
    }
    if (value < 0) return fail(ncclInvalidArgument, "RedOpDestroy : invalid reduction operation {}", value);
    TRY(comm::checkComm(comm, "RedOpDestroy"));
    return comm::destroyRedOp(*comm, op);
  });
}
