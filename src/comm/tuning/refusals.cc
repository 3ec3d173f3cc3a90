#include "comm/tuning/refusals.h"

#include "base/log.h"
#include "comm/tuning/log.h"
#include "device/kernels/kernel_name.h"

namespace tutti::comm {

namespace {

Status nothingSelected(const Tuning& tuning, const Request& request) {
  Request free = request;
  free.options.selection = {};
  return fail(
      ncclInvalidArgument,
      "{}: nothing of what algSelection allows for this call is possible with datatype {} and operator {} here. "
      "Weighed: {}. Without algSelection: {}",
      device::funcName(request.func), device::typeName(request.type), device::devOpName(request.op),
      describeCandidates(tuning, request), describeCandidates(tuning, free));
}

/// Who asks for CollNet, and for nothing else, wants to know why there is none.
std::string whyNoCollNet(const Tuning& tuning, const Request& request) {
  const auto& allowed = tuning.input.filter.algorithms[static_cast<std::size_t>(request.func)];
  const auto asks = [&](device::Algorithm algorithm) {
    return tuning.input.filter.restricted() && allowed[static_cast<std::size_t>(algorithm)] != Permission::No;
  };
  const bool asked = asks(device::Algorithm::CollNetDirect) || asks(device::Algorithm::CollNetChain);
  return asked && !tuning.input.collNet.why.empty() ? ". " + tuning.input.collNet.why : "";
}

/// Settings and table, as all of these errors end.
Status noneAvailable(const Tuning& tuning, const Request& request, const std::string& why) {
  const TuningFilter& filter = tuning.input.filter;
  const ncclResult_t code = filter.restricted() ? ncclInvalidUsage : ncclInternalError;
  return fail(code,
              "No algorithm/protocol available for function {} with datatype {} and operator {}. NCCL_ALGO was "
              "set to {}, NCCL_PROTO to {}. Weighed: {}{}",
              device::funcName(request.func), device::typeName(request.type), device::devOpName(request.op),
              filter.algoText.empty() ? "nothing" : filter.algoText,
              filter.protoText.empty() ? "nothing" : filter.protoText, describeCandidates(tuning, request), why);
}

}  // namespace

Status nothingLeft(const Tuning& tuning, const Request& request) {
  const Selection& selection = request.options.selection;
  if (selection.given() && selection.forced) return nothingSelected(tuning, request);
  return noneAvailable(tuning, request, whyNoCollNet(tuning, request));
}

Status forbidden(const Tuning& tuning, const Request& request, const std::string& plugin) {
  return noneAvailable(tuning, request, ". The " + plugin + " has forbidden all of these that it knows");
}

}  // namespace tutti::comm
