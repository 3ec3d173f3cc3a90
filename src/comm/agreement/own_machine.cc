#include "comm/agreement/own_machine.h"

#include <fmt/format.h>
#include <algorithm>

#include "base/hash.h"
#include "comm/settings/topology_settings.h"
#include "gpu/driver.h"
#include "topo/detect/live.h"

namespace tutti::comm {

OwnMachine ownMachine(topo::XmlElement elements, std::vector<topo::PeerRefusal> peersRefused) {
  std::uint64_t hash = hashText(topo::writeXml(elements));
  for (const topo::PeerRefusal& pair : peersRefused) hash = hashText(fmt::format("{} {}", pair.from, pair.to), hash);
  return {std::move(elements), std::move(peersRefused), std::max<std::uint64_t>(hash, 1)};
}

bool mustWork(const TopologySettings& settings, Status status) {
  return !settings.file.empty() || status.code() == ncclUnhandledCudaError;
}

Result<OwnMachine> readMachine(const gpu::Driver& driver, const TopologySettings& settings,
                               const std::optional<std::vector<topo::NetDeviceFacts>>& nets) {
  topo::LiveRequest request{.driver = &driver, .topologyFile = settings.file, .nets = {}, .systemRoot = {}};
  if (!driver.softGpu) request.nets = nets;
  auto detected = topo::detectLive(request);
  if (!detected.ok() && mustWork(settings, detected.status())) return detected.status();
  if (!detected.ok() || !detected.value()) return OwnMachine{};
  topo::LiveTopology& live = *detected.value();
  return ownMachine(std::move(live.xml), std::move(live.peersRefused));
}

}  // namespace tutti::comm
