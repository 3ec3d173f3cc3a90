#include "comm/tuning/advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "comm/tuning/filter.h"
#include "device/kernels/kernel_name.h"

namespace tutti::comm {

namespace {

constexpr float kNotToBeHad = -1;
constexpr std::size_t kAdvisedCandidates = std::size_t{topo::kCostAlgorithms} * topo::kCostProtocols;

static_assert(topo::kCostProtocols == device::kProtocols);
// The first candidates are those of the plugin's table, in its order.
static_assert(static_cast<int>(device::Algorithm::Pat) + 1 == topo::kCostAlgorithms);

float& entryOf(AdvisedTimes& times, std::size_t candidate) {
  return times[candidate / device::kProtocols][candidate % device::kProtocols];
}

}  // namespace

Result<AdvisedChoice> adviseOn(TunerAdvice& advice, const Request& request, unsigned perPipeline,
                               std::span<const Candidate, kCandidates> table, const Candidate& best) {
  AdvisedTimes times;
  for (std::size_t i = 0; i < kAdvisedCandidates; ++i) {
    const bool possible = table[i].verdict == Verdict::Possible;
    entryOf(times, i) = possible ? static_cast<float>(table[i].microseconds) : kNotToBeHad;
  }
  AdvisedTimes wanted = times;
  AdvisedChoice choice{.best = best};
  ASSIGN(choice.nChannels, advice.times(request, perPipeline, wanted));
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < kAdvisedCandidates; ++i) {
    if (entryOf(times, i) < 0) continue;
    const float time = entryOf(wanted, i);
    choice.changed |= time != entryOf(times, i);
    // Written so that what is no number is not taken.
    if (time >= 0 && (!first || time < entryOf(wanted, *first))) first = i;
  }
  if (!choice.changed) return choice;
  choice.best.reset();
  if (first) choice.best = table[*first];
  return choice;
}

Status adviseChunk(TunerAdvice& advice, const Request& request, std::uint32_t most, Choice& choice) {
  if (!advice.cutsChunks() || static_cast<int>(choice.algorithm) >= topo::kCostAlgorithms) return {};
  ASSIGN(const std::size_t wanted, advice.chunk(request, choice));
  if (wanted == choice.chunkBytes) return {};
  if (wanted > most) {
    info(kTuning, "{}: {}: a chunk of {} bytes is more than buffers have room for; taking {}", advice.name(),
         device::funcName(request.func), wanted, most);
  }
  const std::size_t grains = std::max<std::size_t>(std::min<std::size_t>(wanted, most) / device::kGrainBytes, 1);
  choice.chunkBytes = static_cast<std::uint32_t>(grains * device::kGrainBytes);
  return {};
}

std::string adviceText(const Request& request, std::string_view plugin, const AdvisedTimes& before,
                       const AdvisedTimes& after, int nChannels) {
  std::string text;
  for (std::size_t a = 0; a < before.size(); ++a) {
    for (std::size_t p = 0; p < before[a].size(); ++p) {
      if (before[a][p] < 0 || after[a][p] == before[a][p]) continue;
      text += fmt::format("{}{}/{} {:.1f} us -> ", text.empty() ? "" : ", ", logName(static_cast<device::Algorithm>(a)),
                          logName(static_cast<device::Protocol>(p)), before[a][p]);
      text += after[a][p] >= 0 ? fmt::format("{:.1f} us", after[a][p]) : "forbidden";
    }
  }
  if (text.empty()) text = "changes nothing";
  if (nChannels > 0) text += fmt::format("; {} channels", nChannels);
  return fmt::format("{}: {} Bytes: {} {}", device::funcName(request.func), request.bytes, plugin, text);
}

}  // namespace tutti::comm
