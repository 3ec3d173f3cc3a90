#include "comm/tuning/log.h"

#include <fmt/format.h>

#include "device/kernels/kernel_name.h"

namespace tutti::comm {

namespace {

std::string_view reasonOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::Possible:
      return "possible";
    case Verdict::NotAllowed:
      return "not allowed";
    case Verdict::NoConnections:
      return "not connected";
    case Verdict::NoBuffers:
      return "no buffers";
    case Verdict::TooManyRanks:
      return "too many ranks";
    case Verdict::Unsafe:
      return "unsafe on these links";
    case Verdict::NotInNetwork:
      return "not done by the network for this type and operation";
    case Verdict::NoKernel:
      return "no kernel";
  }
  return "?";
}

}  // namespace

std::string describeCandidates(const Tuning& tuning, const Request& request) {
  const auto table = weigh(tuning, request);
  std::string text;
  const auto separate = [&](std::string_view between) {
    if (!text.empty()) text += between;
  };
  for (const Candidate& candidate : table) {
    if (candidate.verdict != Verdict::Possible) continue;
    separate(", ");
    text += fmt::format("{}/{} {:.1f} us", logName(candidate.algorithm), logName(candidate.protocol),
                        candidate.microseconds);
  }
  for (const Verdict why : {Verdict::NotAllowed, Verdict::NoConnections, Verdict::NoBuffers, Verdict::TooManyRanks,
                            Verdict::Unsafe, Verdict::NotInNetwork}) {
    std::string names;
    for (const Candidate& candidate : table) {
      if (candidate.verdict != why) continue;
      names += fmt::format(" {}/{}", logName(candidate.algorithm), logName(candidate.protocol));
    }
    if (names.empty()) continue;
    separate("; ");
    text += fmt::format("{}:{}", reasonOf(why), names);
  }
  return text.empty() ? "nothing" : text;
}

std::vector<std::string> describeTuning(const Tuning& tuning) {
  const TuningInput& in = tuning.input;
  std::vector<std::string> lines{
      fmt::format("Model for {} ranks on {} nodes, {} channels: latency/bandwidth in us, GB/s; 0: not available",
                  in.ranks.nRanks, in.ranks.nNodes, in.nChannels)};
  for (std::size_t a = 0; a < device::kAlgorithms; ++a) {
    for (std::size_t f = 0; f < kTunedFuncs; ++f) {
      std::string row;
      bool any = false;
      for (std::size_t p = 0; p < device::kProtocols; ++p) {
        const bool possible = tuning.verdicts[f][a][p] == Verdict::Possible;
        any |= possible;
        const Cost cost = possible ? tuning.costs[f][a][p] : Cost{};
        row += fmt::format(" {:>6} {:7.1f}/{:<7.1f}", logName(static_cast<device::Protocol>(p)), cost.latencyUs,
                           cost.bandwidth);
      }
      if (!any) continue;
      lines.push_back(fmt::format("{:>14} {:>13} |{}", logName(static_cast<device::Algorithm>(a)),
                                  device::funcName(static_cast<device::Func>(f)), row));
    }
  }
  lines.push_back(fmt::format("Max NThreads LL {} LL128 {} SIMPLE {}", in.policy.collThreads[0],
                              in.policy.collThreads[1], in.policy.collThreads[2]));
  return lines;
}

std::string thresholdsLine(const TuningInput& input) {
  std::string text;
  for (const device::Algorithm algorithm : {device::Algorithm::Tree, device::Algorithm::Ring}) {
    const auto of = [&](device::Protocol protocol) { return threadThreshold(input, algorithm, protocol); };
    text +=
        fmt::format("{}/{}/{} | ", of(device::Protocol::LL), of(device::Protocol::LL128), of(device::Protocol::Simple));
  }
  return fmt::format("threadThresholds {}0 | 0", text);
}

}  // namespace tutti::comm
