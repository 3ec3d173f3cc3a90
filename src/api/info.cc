// Functions that need neither a communicator nor a GPU.
#include <new>
#include <string>

#include "api/boundary.h"
#include "comm/inits.h"
#include "comm/library.h"
#include "comm/state/living_comms.h"

using namespace tutti;

TUTTI_API(ncclResult_t, GetVersion, (int* version)) {
  return api::ask("ncclGetVersion", [&]() -> Status {
    TRY(api::checkPointer(version, "GetVersion", "version"));
    *version = NCCL_VERSION_CODE;
    return {};
  });
}

TUTTI_API(const char*, GetErrorString, (ncclResult_t result)) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    case ncclTimeout:
      return "timeout";
    case ncclNumResults:
      break;
  }
  return "unknown result code";
}

/// The thread's own text first: what it reads after a call that failed is of that call, whatever other threads report
/// meanwhile. Then why the communicator has failed, for calls that only say that it has. Then the process's.
TUTTI_API(const char*, GetLastError, (ncclComm_t comm)) {
  if (const char* const own = threadErrorText(); *own != '\0') return lastingErrorText(own);
  try {
    if (const std::string failure = comm::LivingComms::instance().failureOf(comm); !failure.empty())
      return lastingErrorText(failure);
  } catch (const std::bad_alloc&) {
    // The process's text needs no memory.
  }
  return lastErrorText();
}

TUTTI_API(void, ResetDebugInit, (void)) {
  resetLog();
}

/// What profilers and other tools call; in no header.
extern "C" __attribute__((visibility("default"))) void ncclResetDebugInitInternal();
extern "C" void ncclResetDebugInitInternal() {
  resetLog();
}

TUTTI_API(ncclResult_t, GetUniqueId, (ncclUniqueId * uniqueId)) {
  return api::api("ncclGetUniqueId", [&]() -> Status {
    TRY(comm::startLibraryWithoutCuda());
    TRY(api::checkPointer(uniqueId, "GetUniqueId", "uniqueId"));
    ASSIGN(*uniqueId, comm::makeUniqueId());
    return {};
  });
}
