#include "comm/agreement/affinity.h"

#include <fmt/format.h>

#include "base/threads/cpu_set.h"
#include "comm/agreement/own_machine.h"
#include "comm/settings/affinity_settings.h"
#include "topo/xml/values.h"

namespace tutti::comm {

namespace {

/// Searches below `element`, which hangs at a CPU with these processors.
const std::string* wordsNear(const topo::XmlElement& element, const std::string* words, std::uint64_t busId) {
  if (element.name == "cpu") words = element.find("affinity");
  const std::string* const id = element.find("busid");
  if (element.name == "pci" && id != nullptr && topo::parseBusId(*id) == busId) return words;
  for (const topo::XmlElement& child : element.children) {
    if (const std::string* const found = wordsNear(child, words, busId)) return found;
  }
  return nullptr;
}

}  // namespace

std::optional<cpu_set_t> processorsNear(const OwnMachine& machine, std::uint64_t busId) {
  if (!machine.elements) return std::nullopt;
  const std::string* const words = wordsNear(*machine.elements, nullptr, busId);
  return words == nullptr ? std::nullopt : parseCpuWords(*words);
}

Affinity affinityFor(const AffinitySettings& settings, int device, const std::optional<cpu_set_t>& gpu,
                     const std::optional<cpu_set_t>& job) {
  if (!settings.proxyCpus.empty()) {
    if (const auto given = parseCpuList(settings.proxyCpus)) {
      return {given,
              fmt::format("The progress thread of GPU {} runs on processors {} (NCCL_PROXY_CPUSET)", device,
                          cpuListText(*given)),
              {}};
    }
    Affinity unset = affinityFor({.proxyCpus = "", .ignoreJob = settings.ignoreJob}, device, gpu, job);
    unset.complaint = fmt::format("Invalid value {} for NCCL_PROXY_CPUSET, using default unset.", settings.proxyCpus);
    return unset;
  }
  if (!gpu) return {};
  const cpu_set_t near = settings.ignoreJob || !job ? *gpu : *gpu & *job;
  if (CPU_COUNT(&near) == 0) return {std::nullopt, fmt::format("Affinity for GPU {} is empty, ignoring.", device), {}};
  return {near,
          fmt::format("Affinity for GPU {} is {}. (GPU affinity = {} ; CPU affinity = {}).", device, cpuListText(near),
                      cpuListText(*gpu), job ? cpuListText(*job) : "unknown"),
          {}};
}

}  // namespace tutti::comm
