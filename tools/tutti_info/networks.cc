#include "networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/environment.h"
#include "base/log.h"
#include "base/settings/params.h"
#include "comm/agreement/own_machine.h"
#include "comm/network/network.h"
#include "comm/settings/network_settings.h"
#include "comm/settings/topology_settings.h"
#include "gpu/dma_buf.h"
#include "plugin/env_source.h"
#include "plugin/network/net.h"
#include "plugin/network/registry.h"
#include "topo/detect/detect.h"
#include "topo/xml/xml.h"

namespace tutti::tool {

namespace {

std::string verdictText(const plugin::NetVerdict& verdict) {
  using Outcome = plugin::NetVerdict::Outcome;
  const bool named = !verdict.name.empty() && verdict.name != verdict.title;
  const std::string title = named ? fmt::format("{} ({})", verdict.name, verdict.title) : verdict.title;
  switch (verdict.outcome) {
    case Outcome::Chosen:
      return fmt::format("  {}: chosen, the first that can be used\n", title);
    case Outcome::Refused:
      return fmt::format("  {}: not used: {}\n", title, verdict.why);
    case Outcome::NotAsked:
      return fmt::format("  {}: not asked: one before it was chosen{}\n", title,
                         verdict.external ? "" : fmt::format(" (NCCL_NET={} would take it)", verdict.title));
  }
  return {};
}

std::string memoryText(const plugin::NetProperties& device) {
  std::string text = "host memory";
  if ((device.ptrSupport & static_cast<int>(plugin::PtrKind::Cuda)) != 0) text += ", GPU memory by its address";
  if ((device.ptrSupport & static_cast<int>(plugin::PtrKind::DmaBuf)) != 0) text += ", GPU memory as dma-bufs";
  return text;
}

std::string deviceText(const comm::CommNetwork& network, int number) {
  const plugin::NetProperties& device = network.devices()[static_cast<std::size_t>(number)];
  std::string parts;
  for (const int part : device.physical) {
    if (device.physical.size() < 2) break;
    parts += fmt::format("{}{}", parts.empty() ? ", made of devices " : ", ", part);
  }
  return fmt::format("    device {}: {}, port {}, {} Mbit/s, {}{}\n      takes {}\n", number, device.name, device.port,
                     device.speedMbps, pciText(device.pciPath), parts, memoryText(device));
}

FoundDriver findDriver() {
  const ErrorsAsInfo quiet;
  const Result<const gpu::Driver*> driver = gpu::loadDriver();
  return driver.ok() ? FoundDriver{driver.value(), {}} : FoundDriver{nullptr, lastErrorText()};
}

/// Whether any GPU is such.
bool anyGpu(const gpu::Driver* driver, bool (*is)(const gpu::Driver& driver, CUdevice device)) {
  int count = 0;
  if (driver == nullptr || driver->cuDeviceGetCount(&count) != CUDA_SUCCESS) return false;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    if (driver->cuDeviceGet(&device, ordinal) == CUDA_SUCCESS && is(*driver, device)) return true;
  }
  return false;
}

bool givesDmaBufs(const gpu::Driver& driver, CUdevice device) {
  return gpu::exportsDmaBufs(driver, device);
}

/// Devices become one as they would for a communicator, and the network knows of dma-bufs where any GPU gives them.
Status prepare(comm::CommNetwork& network, const Params& params, const gpu::Driver* driver) {
  const auto describe = [&](const std::vector<topo::NetDeviceFacts>& nets) -> Result<std::optional<topo::XmlElement>> {
    if (driver == nullptr) return std::optional<topo::XmlElement>();
    ASSIGN(comm::OwnMachine machine, comm::readMachine(*driver, comm::topologySettingsFrom(params), nets));
    return std::move(machine.elements);
  };
  if (params.topology.dmaBufEnable && anyGpu(driver, &givesDmaBufs)) network.offerDmaBufs();
  return network.fuse(comm::fusionSettings(params), describe);
}

/// The candidates, and the devices of the one that is chosen, which goes to `network`.
std::string choiceText(const Params& params, const gpu::Driver* driver, std::unique_ptr<comm::CommNetwork>& network) {
  std::string text =
      fmt::format("Networks, in the order in which they are tried ({}, {})\n",
                  settingText("NCCL_NET_PLUGIN", params.misc.netPlugin), settingText("NCCL_NET", params.misc.netName));
  std::vector<plugin::NetVerdict> verdicts;
  const bool gpuMemoryIsHost = driver != nullptr && driver->softGpu && anyGpu(driver, &gpu::reachedByNics);
  auto chosen =
      comm::CommNetwork::choose(params.misc.netName, {.commId = 1, .gpuMemoryIsHost = gpuMemoryIsHost}, verdicts);
  for (const plugin::NetVerdict& verdict : verdicts) text += verdictText(verdict);
  if (!chosen.ok()) return text + fmt::format("  It does not say what its devices are: {}\n", lastErrorText());
  network = std::move(chosen).value();
  if (network == nullptr) return text + "  None can be used: ranks of several hosts cannot meet\n";
  if (!prepare(*network, params, driver).ok())
    text += fmt::format("  Making one device of several: {}\n", lastErrorText());
  text += fmt::format("  Devices of {}\n", network->net().name());
  for (const int number : network->usable()) text += deviceText(*network, number);
  return text;
}

}  // namespace

int printNetworks() {
  if (!plugin::startEnvironment().ok()) {
    std::fprintf(stderr, "%s\n", lastErrorText());
    return 1;
  }
  const Params params = Params::read(settingsSource());
  std::unique_ptr<comm::CommNetwork> network;
  const FoundDriver found = findDriver();
  std::string text = choiceText(params, found.driver, network);
  text += "\n" + verbsText(params, "/sys/class/infiniband");
  text += "\n" + interfacesText(params, "/sys/class/net");
  text += "\n" + gpuDirectText(params, found, network.get(), "");
  std::fputs(text.c_str(), stdout);
  return network != nullptr ? 0 : 1;
}

}  // namespace tutti::tool
