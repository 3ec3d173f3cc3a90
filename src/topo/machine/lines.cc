#include "topo/machine/lines.h"

#include "base/log.h"

namespace tutti::topo {

namespace {

constexpr std::size_t kIndent = 14;

const char* linkName(LinkKind kind) {
  switch (kind) {
    case LinkKind::Local:
      return "LOC";
    case LinkKind::NvLink:
      return "NVL";
    case LinkKind::C2c:
      return "C2C";
    case LinkKind::Pci:
      return "PCI";
    case LinkKind::Sys:
      return "SYS";
    case LinkKind::Net:
      return "NET";
  }
  return "?";
}

/// Architecture, vendor and model by the numbers that such lines have: 1 x86, 2 POWER, 3 ARM; 1 Intel, 2 AMD, 3
/// Zhaoxin.
const char* cpuNumbers(CpuKind kind) {
  switch (kind) {
    case CpuKind::IntelBroadwell:
      return "1/1/1";
    case CpuKind::IntelSkylake:
      return "1/1/2";
    case CpuKind::IntelSapphireRapids:
      return "1/1/3";
    case CpuKind::IntelEmeraldRapids:
      return "1/1/4";
    case CpuKind::Amd:
      return "1/2/-1";
    case CpuKind::Zhaoxin:
      return "1/3/-1";
    case CpuKind::ZhaoxinYongfeng:
      return "1/3/1";
    case CpuKind::OtherX86:
      return "1/-1/-1";
    case CpuKind::Arm:
      return "3/-1/-1";
    case CpuKind::Power:
      return "2/-1/-1";
  }
  return "?";
}

/// What stands in parentheses behind a node's name, "" if nothing does.
std::string detailsOf(const Machine& machine, int node) {
  switch (machine.node(node).kind()) {
    case NodeKind::Cpu:
      return fmt::format(" ({})", cpuNumbers(machine.facts<CpuFacts>(node).kind));
    case NodeKind::Switch:
      return fmt::format(" ({:x})", machine.facts<SwitchFacts>(node).deviceId);
    case NodeKind::Gpu:
      return fmt::format(" ({})", machine.facts<GpuFacts>(node).rank);
    case NodeKind::Net:
      return fmt::format(" ({}/{:x}/{})", machine.facts<NetFacts>(node).name, machine.facts<NetFacts>(node).guid,
                         machine.facts<NetFacts>(node).port);
    case NodeKind::Device:
    case NodeKind::NvSwitch:
    case NodeKind::Nic:
      return "";
  }
  return "";
}

class TreeLines {
 public:
  explicit TreeLines(const Machine& machine)
      : machine_(machine), shown_(static_cast<std::size_t>(machine.nodeCount()), false) {}

  std::vector<std::string> run() {
    for (const int cpu : machine_.nodes(NodeKind::Cpu)) {
      lines_.push_back(nodeName(machine_, cpu) + detailsOf(machine_, cpu));
      below(cpu, -1, 0);
    }
    return std::move(lines_);
  }

 private:
  /// Is the node at the end of the link shown with all that is below it, at this place?
  bool leadsDown(const Link& link) const {
    if (shown_[static_cast<std::size_t>(link.to)]) return false;
    switch (machine_.node(link.to).kind()) {
      case NodeKind::Cpu:
      case NodeKind::NvSwitch:
        return false;
      case NodeKind::Gpu:
      case NodeKind::Nic:
      case NodeKind::Net:
        return true;
      case NodeKind::Switch:
      case NodeKind::Device:
        return link.kind == LinkKind::Pci;
    }
    return false;
  }

  void below(int node, int parent, std::size_t level) {
    shown_[static_cast<std::size_t>(node)] = true;
    for (const int number : machine_.node(node).links) {
      const Link& link = machine_.link(number);
      if (link.to == parent) continue;
      const bool down = leadsDown(link);
      lines_.push_back(fmt::format("{}+ {}[{:.1f}] - {}{}", std::string(level * kIndent, ' '), linkName(link.kind),
                                   link.bandwidth, nodeName(machine_, link.to),
                                   down ? detailsOf(machine_, link.to) : ""));
      if (down) below(link.to, node, level + 1);
    }
  }

  const Machine& machine_;
  std::vector<bool> shown_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> machineTreeLines(const Machine& machine) {
  return TreeLines(machine).run();
}

std::vector<std::string> machineLines(const Machine& machine, const MachineBandwidth& bandwidth) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("=== System : maxBw {:.1f} totalBw {:.1f} ===", bandwidth.best, bandwidth.total));
  for (std::string& line : machineTreeLines(machine)) lines.push_back(std::move(line));
  lines.emplace_back("==========================================");
  return lines;
}

}  // namespace tutti::topo
