// The border between C callers and the library: how a function is exported, and what may cross.
#pragma once

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "api/nvtx_range.h"
#include "base/log.h"
#include "base/status.h"
#include "comm/enqueue/group.h"
#include "comm/state/progress.h"
#include "nccl.h"
#include "trace/call.h"

/// Defines one entry point: strong pncclX with the body that follows, and weak ncclX at the same address.
#define TUTTI_API(result, name, params)                                                                   \
  extern "C" __attribute__((visibility("default"), weak, alias("pnccl" #name))) result nccl##name params; \
  extern "C" __attribute__((visibility("default"))) result pnccl##name params

namespace tutti::api {

namespace detail {
inline ncclResult_t toCode(Status status) {
  return status.code();
}
inline ncclResult_t toCode(const Result<comm::Progress>& result) {
  if (!result.ok()) return result.status().code();
  return result.value() == comm::Progress::Pending ? ncclInProgress : ncclSuccess;
}
}  // namespace detail

/// Runs the body of an entry point that only asks; no exception leaves the library. `function` is the exported name.
/// The thread's last error is afterwards that of this call, or none.
template <class Body>
ncclResult_t ask(std::string_view function, Body&& body) noexcept {
  forgetThreadError();
  trace::Call call(function);
  try {
    const ncclResult_t code = detail::toCode(body());
    call.setResult(code);
    if (code == ncclSuccess || code == ncclInProgress) forgetThreadError();
    return code;
  } catch (const std::bad_alloc&) {
    return fail(ncclSystemError, "{}: the process is out of host memory", function).code();
  } catch (const std::exception& e) {
    return fail(ncclInternalError, "{}: unexpected exception: {}. Please report this defect", function, e.what())
        .code();
  } catch (...) {
    return fail(ncclInternalError, "{}: unexpected exception. Please report this defect", function).code();
  }
}

/// The same for calls that may stand inside a group, whose end repeats their error, and that have a range of their own.
template <class Body>
ncclResult_t insideGroup(std::string_view function, Body&& body) noexcept {
  const ncclResult_t code = ask(function, std::forward<Body>(body));
  if (code != ncclSuccess && code != ncclInProgress) comm::latchGroupError(Status(code));
  return code;
}

/// The body of an entry point that does something: a range for tools, with the function's name, is around it.
template <class Body>
ncclResult_t api(std::string_view function, Body&& body) noexcept {
  const NvtxRange range(function);
  return ask(function, std::forward<Body>(body));
}
/// The same for calls that may stand inside a group: the group's end repeats their error.
template <class Body>
ncclResult_t apiInGroup(std::string_view function, Body&& body) noexcept {
  const NvtxRange range(function);
  return insideGroup(function, std::forward<Body>(body));
}

/// `label : what argument is NULL` unless the pointer is set.
inline Status checkPointer(const void* pointer, std::string_view label, std::string_view what) {
  if (pointer != nullptr) return {};
  return fail(ncclInvalidArgument, "{} : {} argument is NULL", label, what);
}

/// The answer of entry points whose function is not part of this release.
inline Status notYet(std::string_view function) {
  return fail(ncclInvalidUsage, "tutti does not support {} yet", function);
}

/// comm not NULL, not damaged, and ready for work.
Status checkUsable(ncclComm_t comm, std::string_view label);
/// The same, and not revoked: for what moves data.
Status checkMovable(ncclComm_t comm, std::string_view label);

}  // namespace tutti::api
