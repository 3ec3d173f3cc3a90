#include <fmt/format.h>

#include <filesystem>

#include "base/log.h"
#include "base/settings/params.h"
#include "networks.h"
#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/options.h"
#include "transport/net/ib/nic/registrations.h"
#include "transport/net/ib/nic/survey.h"

namespace tutti::tool {

namespace {

using namespace net::ib;

const char* portStateText(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "DOWN";
    case IBV_PORT_INIT:
      return "INIT";
    case IBV_PORT_ARMED:
      return "ARMED";
    case IBV_PORT_ACTIVE:
      return "ACTIVE";
    case IBV_PORT_ACTIVE_DEFER:
      return "ACTIVE_DEFER";
    case IBV_PORT_NOP:
      break;
  }
  return "of unknown state";
}

const char* linkText(int layer) {
  if (layer == IBV_LINK_LAYER_ETHERNET) return "Ethernet (RoCE)";
  return layer == IBV_LINK_LAYER_INFINIBAND ? "InfiniBand" : "of an unknown link layer";
}

/// Link-local, of RoCE v1 and the like.
std::string flawsText(const GidFlaws& flaws) {
  std::string text;
  const auto add = [&](bool has, const char* what) {
    if (has) text += (text.empty() ? "" : ", ") + std::string(what);
  };
  add(flaws.linkLocal, "link-local");
  add(flaws.outside, "not within NCCL_IB_ADDR_RANGE");
  add(flaws.otherVersion, "not of the RoCE version that is wished");
  add(flaws.otherFamily, "not of the family that is wished");
  return text;
}

std::string versionText(const GidEntry& entry) {
  return entry.roceVersion == 0 ? "of no RoCE version" : fmt::format("RoCE v{}", entry.roceVersion);
}

std::string reasonText(const GidChoice& choice, bool ethernet) {
  switch (choice.reason) {
    case GidReason::Named:
      return ethernet || choice.entry.index != 0 ? "NCCL_IB_GID_INDEX asks for it"
                                                 : "InfiniBand uses entry 0 unless NCCL_IB_GID_INDEX is set";
    case GidReason::Best:
      return choice.doubt.empty() ? "the first that is as wished" : "nothing fits better";
    case GidReason::Nothing:
      return "there is no other";
  }
  return {};
}

std::string wishText(const GidWish& wish, const Params& params) {
  if (wish.index >= 0) return fmt::format("entry {}", wish.index);
  return fmt::format("{}, RoCE v{}{}", params.ib.addrFamily, wish.roceVersion,
                     params.ib.addrRange.empty() ? "" : ", within " + params.ib.addrRange);
}

std::string gidsText(const Nic& nic, const PortSight& port, const IbOptions& options, const Params& params) {
  const bool ethernet = port.attributes->link_layer == IBV_LINK_LAYER_ETHERNET;
  const GidWish wish = options.gidFor(ethernet);
  const std::vector<GidEntry> table = nic.gids(port.number, port.attributes->gid_tbl_len);
  const GidChoice choice = chooseGid(table, wish);
  std::string text = fmt::format("      GIDs: {} of {} entries are set; wished: {}\n", table.size(),
                                 port.attributes->gid_tbl_len, wishText(wish, params));
  for (const GidEntry& entry : table) {
    const std::string flaws = ethernet ? flawsText(flawsOf(entry, wish)) : "";
    const bool taken = entry.index == choice.entry.index;
    text += fmt::format("        [{}] {} {} {}{}{}\n", entry.index, gidText(entry.gid),
                        familyOf(entry.gid) == GidFamily::Ipv4 ? "IPv4" : "IPv6",
                        ethernet ? versionText(entry) : "InfiniBand", flaws.empty() ? "" : ": " + flaws,
                        taken ? fmt::format(" <- taken: {}", reasonText(choice, ethernet)) : "");
  }
  if (ethernet && !choice.doubt.empty()) {
    text += fmt::format("        Doubtful: GID {} is taken, but {}\n", choice.entry.index, choice.doubt);
  }
  return text;
}

std::string chosenText(const PortSight& port, const std::string& list) {
  if (list.empty()) return "NCCL_IB_HCA is not set: all ports are chosen";
  const std::string part = port.chosenBy.empty() ? "no part of NCCL_IB_HCA fits it" : "fits " + port.chosenBy;
  return fmt::format("{} by NCCL_IB_HCA ({})", port.use == PortUse::NotChosen ? "left out" : "chosen", part);
}

std::string portText(const Nic& nic, const PortSight& port, const IbOptions& options, const Params& params) {
  const std::string use = port.use == PortUse::Used ? "used" : fmt::format("not used: {}", portUseText(port.use));
  std::string text = fmt::format("    port {}: {}\n      {}\n", port.number, use, chosenText(port, options.hca));
  if (!port.attributes) return text;
  const ibv_port_attr& is = *port.attributes;
  text += fmt::format("      {}, {}, {} Mbit/s, MTU {}, LID {}\n", portStateText(is.state), linkText(is.link_layer),
                      portSpeedMbps(is.active_speed, is.active_width), 128 << is.active_mtu, is.lid);
  return text + gidsText(nic, port, options, params);
}

std::string nicText(const NicSight& sight, const IbOptions& options, const Params& params) {
  if (sight.nic == nullptr) return fmt::format("  {}: not used: {}\n", sight.name, sight.why);
  const Nic& nic = *sight.nic;
  std::error_code none;
  const auto found = std::filesystem::canonical(nic.folder() + "/device", none);
  const std::string pciPath = none ? std::string() : found.string();
  std::string text = fmt::format("  {}: GUID {:#018x}, {}, {}\n", sight.name, nic.attributes().sys_image_guid,
                                 pciText(pciPath), numaText(pciPath));
  text += fmt::format("    dma-bufs of GPU memory: {}\n", nic.dmaBufs().taken ? "taken" : "no: " + nic.dmaBufs().why);
  for (const PortSight& port : sight.ports) text += portText(nic, port, options, params);
  return text;
}

std::string orderingText(const IbSearch& found, const IbOptions& options) {
  if (!options.relaxedOrdering) return "off: NCCL_IB_PCI_RELAXED_ORDERING=0";
  for (const NicSight& sight : found.seen) {
    if (sight.nic == nullptr) continue;
    return sight.nic->registrations().ordersRelaxed() ? "on: data may be written in any order, control data never"
                                                      : "off: this libibverbs has no ibv_reg_mr_iova2";
  }
  return "no NIC is open";
}

std::string lockedText() {
  const std::optional<std::size_t> limit = lockedMemoryLimit();
  if (!limit) return "unlimited";
  return fmt::format(
      "{} KiB, which is little: registering memory may fail (ulimit -l unlimited; LimitMEMLOCK=infinity in the unit of "
      "a service; --ulimit memlock=-1 of a container), unless the process has CAP_IPC_LOCK",
      *limit >> 10);
}

std::string foundText(const IbSurvey& survey, const IbOptions& options, const Params& params) {
  if (!survey.whyNot.empty()) {
    const bool asked = options.disabled;
    return fmt::format("  not used: {}\n{}", survey.whyNot,
                       asked ? ""
                             : "  Install libibverbs1 and ibverbs-providers, or MLNX_OFED; NCCL_IBVERBS_LIB names "
                               "the file\n");
  }
  if (survey.found.seen.empty()) {
    return "  libibverbs lists no device. Is there a NIC with its driver (ls /sys/class/infiniband)? A container needs "
           "--device=/dev/infiniband\n";
  }
  std::string text;
  for (const NicSight& sight : survey.found.seen) text += nicText(sight, options, params);
  text += fmt::format("  relaxed ordering: {}\n  locked memory (ulimit -l): {}\n", orderingText(survey.found, options),
                      lockedText());
  return text;
}

}  // namespace

std::string verbsText(const Params& params, const std::string& sysfs) {
  const IbOptions options = ibOptions(params, -1);
  const std::string title = fmt::format("NICs with verbs that IB sees ({})\n", settingText("NCCL_IB_HCA", options.hca));
  const Result<IbSurvey> survey = surveyIb(options, sysfs);
  return title + (survey.ok() ? foundText(survey.value(), options, params) : fmt::format("  {}\n", lastErrorText()));
}

}  // namespace tutti::tool
