// Communicators for tests of the tuner and the planner: facts made up, all kernels there.
#pragma once

#include <string_view>

#include "comm/plan/plan.h"
#include "comm/tuning/choice.h"
#include "comm/tuning/log.h"
#include "comm/tuning/model.h"
#include "comm/tuning/speeds.h"
#include "device/policy.h"

namespace tutti::test {

/// As if every combination had its kernel.
inline bool everyKernel(device::Func, device::Algorithm, device::Protocol, device::DevOp, ncclDataType_t) {
  return true;
}

/// NVLink-connected GPUs of one node, all connections there, LL128 safe.
inline comm::TuningInput gpuInput(int nRanks, unsigned channels = 8) {
  comm::TuningInput input;
  input.ranks = {
      .nRanks = nRanks, .nNodes = 1, .computeCapability = 90, .path = comm::PathClass::NVLink, .ll128Safe = true};
  input.speeds = comm::assumedSpeeds(input.ranks, channels, true);
  input.nChannels = channels;
  input.slotBytes = {device::kGpuPolicy.slotBytes, device::kGpuPolicy.meshSlotBytes};
  input.policy = device::kGpuPolicy;
  input.filter = comm::parseTuningFilter("", "").value();
  input.kernelExists = everyKernel;
  return input;
}

/// The software GPU's.
inline comm::TuningInput hostInput(int nRanks) {
  comm::TuningInput input = gpuInput(nRanks, 1);
  input.slotBytes = {device::kHostPolicy.slotBytes, device::kHostPolicy.meshSlotBytes};
  input.policy = device::kHostPolicy;
  return input;
}

inline comm::TuningInput restricted(comm::TuningInput input, std::string_view algo, std::string_view proto) {
  input.filter = comm::parseTuningFilter(algo, proto).value();
  return input;
}

}  // namespace tutti::test
