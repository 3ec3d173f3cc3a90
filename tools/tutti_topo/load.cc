#include "tutti_topo/load.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/environment.h"
#include "base/host.h"
#include "base/log.h"
#include "base/settings/params.h"
#include "gpu/driver.h"
#include "topo/detect/live.h"
#include "topo/machine/path_settings.h"
#include "topo/xml/topology_xml.h"
#include "topo/xml/xml.h"

namespace tutti::tool {
namespace {

/// A description of a machine, and what its driver says of direct access between GPUs.
struct Source {
  topo::XmlElement xml;
  std::vector<topo::PeerRefusal> peersRefused;
};

bool hasGpu(const topo::XmlElement& element) {
  return element.name == "gpu" || std::any_of(element.children.begin(), element.children.end(), hasGpu);
}

Result<Source> lookAtThisMachine() {
  const Result<const gpu::Driver*> driver = gpu::loadDriver();  // without one: the host and what NVML knows
  topo::LiveRequest request;
  if (driver.ok()) request.driver = driver.value();
  ASSIGN(std::optional<topo::LiveTopology> found, topo::detectLive(request));
  if (!found) {
    return fail(
        ncclInvalidUsage,
        "live: a software GPU says nothing about a machine; set SOFTGPU_TOPO to a topology file, or name the file "
        "instead of \"live\"");
  }
  if (!hasGpu(found->xml)) {
    return fail(ncclInvalidUsage, "live: no GPU is seen here: neither the CUDA driver nor NVML shows one");
  }
  return Source{std::move(found->xml), std::move(found->peersRefused)};
}

Result<Source> readSource(const std::string& source) {
  if (source == "live") return lookAtThisMachine();
  ASSIGN(topo::XmlElement xml, topo::readTopologyFile(source));
  return Source{std::move(xml), {}};
}

}  // namespace

Result<Loaded> load(const MachineChoice& choice) {
  Loaded loaded;
  ASSIGN(const Source source, readSource(choice.source));
  loaded.title = std::filesystem::path(choice.source).stem().string();
  if (choice.hosts > 1) loaded.title += " × " + std::to_string(choice.hosts);
  const topo::TopologyUse use{
      .gpus = choice.gpus, .hosts = choice.hosts, .interNode = choice.nodes > 1, .collNet = choice.collNet};
  const Params params = Params::read(processEnvironment());
  topo::PathSettings settings = topo::pathSettings(params);
  settings.p2p.refused = source.peersRefused;
  settings.p2p.host = hostName();
  ASSIGN(loaded.topology, topo::buildTopology(source.xml, use, settings));
  loaded.settings.interNode = loaded.topology.interNode;
  loaded.settings.collNet = choice.collNet;
  loaded.settings.crossNic = static_cast<int>(params.topology.crossNic);
  return loaded;
}

}  // namespace tutti::tool
