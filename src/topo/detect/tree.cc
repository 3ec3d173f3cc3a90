#include "topo/detect/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "base/log.h"

namespace tutti::topo {
namespace {

/// Switches under switches: deeper than any machine.
constexpr std::size_t kMaxBridges = 32;

std::string hex16(std::uint16_t value) {
  return fmt::format("{:#06x}", value);
}

/// Data rate of a generation in the words of /sys.
const char* speedOf(int generation) {
  constexpr const char* kSpeeds[] = {
      "", "2.5 GT/s PCIe", "5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe"};
  return kSpeeds[std::clamp(generation, 0, 6)];
}

int numberOf(const XmlElement& element, std::string_view attribute, int otherwise) {
  const std::string* text = element.find(attribute);
  return text == nullptr ? otherwise : static_cast<int>(std::strtol(text->c_str(), nullptr, 0));
}

void completePci(XmlElement& element, const PciFacts* facts, const char* classIfHidden) {
  offer(element, "class", facts != nullptr ? fmt::format("{:#08x}", facts->classCode) : classIfHidden);
  if (facts != nullptr && facts->vendor != 0) {
    offer(element, "vendor", hex16(facts->vendor));
    offer(element, "device", hex16(facts->device));
    offer(element, "subsystem_vendor", hex16(facts->subsystemVendor));
    offer(element, "subsystem_device", hex16(facts->subsystemDevice));
  }
  offer(element, "link_speed", facts != nullptr ? facts->linkSpeed : "");
  offer(element, "link_width", std::to_string(facts != nullptr ? facts->linkWidth : 0));
}

}  // namespace

void offer(XmlElement& element, std::string_view attribute, std::string value) {
  if (element.find(attribute) == nullptr) element.set(attribute, std::move(value));
}

DetectTree::DetectTree() {
  Item root;
  root.self.name = "system";
  root.self.set("version", "1");
  items_.push_back(std::move(root));
}

void DetectTree::import(const XmlElement& root) {
  items_.clear();
  pci_.clear();
  Item item;
  item.self.name = root.name;
  item.self.line = root.line;
  item.self.origin = root.origin;
  item.self.attributes = root.attributes;
  items_.push_back(std::move(item));
  importChildren(root, kRoot);
}

void DetectTree::importChildren(const XmlElement& element, int item) {
  for (const XmlElement& child : element.children) {
    const int copy = add(item, child.name);
    of(copy).self.line = child.line;
    of(copy).self.origin = child.origin;
    of(copy).self.attributes = child.attributes;
    if (child.name == "pci") setPci(copy);
    importChildren(child, copy);
  }
}

void DetectTree::setPci(int item) {
  const std::string* text = of(item).self.find("busid");
  if (text == nullptr) return;
  const std::string busId = normalBusId(*text);
  pci_.emplace(busId.empty() ? *text : busId, item);
}

int DetectTree::add(int parent, std::string name) {
  const int number = static_cast<int>(items_.size());
  Item item;
  item.self.name = std::move(name);
  item.parent = parent;
  items_.push_back(std::move(item));
  of(parent).children.push_back(number);
  return number;
}

int DetectTree::addPci(int parent, const std::string& busId) {
  const int item = add(parent, "pci");
  of(item).self.set("busid", busId);
  pci_.emplace(busId, item);
  return item;
}

int DetectTree::child(int parent, std::string_view name) const {
  for (const int child : of(parent).children) {
    if (of(child).self.name == name) return child;
  }
  return -1;
}

void DetectTree::remove(int item) {
  of(item).removed = true;
  std::vector<int>& siblings = of(of(item).parent).children;
  siblings.erase(std::remove(siblings.begin(), siblings.end(), item), siblings.end());
}

void DetectTree::removeChildren(int parent, std::string_view name) {
  for (int item = child(parent, name); item >= 0; item = child(parent, name)) remove(item);
}

std::vector<int> DetectTree::items(std::string_view name) const {
  std::vector<int> found;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (!items_[i].removed && items_[i].self.name == name) found.push_back(static_cast<int>(i));
  }
  return found;
}

void DetectTree::sortSiblings() {
  const auto key = [this](int item) {
    const XmlElement& self = of(item).self;
    const std::string* busId = self.find("busid");
    return std::tuple(self.name == "nic", numberOf(self, "numaid", 0), busId == nullptr ? std::string() : *busId);
  };
  for (Item& item : items_) {
    std::stable_sort(item.children.begin(), item.children.end(), [&](int a, int b) { return key(a) < key(b); });
  }
}

XmlElement DetectTree::assemble(int item) const {
  XmlElement element = of(item).self;
  for (const int child : of(item).children) element.children.push_back(assemble(child));
  return element;
}

DetectPlaces::DetectPlaces(const HostFacts& host, DetectTree& tree) : host_(host), tree_(tree) {
  for (const PciFacts& facts : host.pci) pci_.emplace(facts.busId, &facts);
}

const PciFacts* DetectPlaces::find(const std::string& busId) const {
  const auto found = pci_.find(busId);
  return found == pci_.end() ? nullptr : found->second;
}

int DetectPlaces::findCpu(int numa) const {
  for (const int item : tree_.of(DetectTree::kRoot).children) {
    const XmlElement& self = tree_.of(item).self;
    if (self.name == "cpu" && numberOf(self, "numaid", -1) == numa) return item;
  }
  return -1;
}

int DetectPlaces::addCpu(int numa) {
  const int item = tree_.add(DetectTree::kRoot, "cpu");
  tree_.of(item).self.set("numaid", std::to_string(numa));
  return item;
}

int DetectPlaces::cpu(int numa) {
  if (const int known = findCpu(numa); known >= 0) return known;
  const auto same = [numa](const NumaNodeFacts& node) { return node.id == numa; };
  if (std::any_of(host_.numaNodes.begin(), host_.numaNodes.end(), same)) return addCpu(numa);
  // Nobody knows where it hangs. A <cpu> of -1 or the first one of a file, or the first that the host has.
  const int first = host_.numaNodes.empty() ? 0 : host_.numaNodes.front().id;
  if (const int known = findCpu(first); known >= 0) return known;
  if (const int any = host_.numaNodes.empty() ? tree_.child(DetectTree::kRoot, "cpu") : -1; any >= 0) return any;
  return addCpu(first);
}

int DetectPlaces::anyCpu() {
  int best = -1;
  for (const int item : tree_.items("cpu")) {
    const auto numa = [&](int cpu) { return numberOf(tree_.of(cpu).self, "numaid", -1); };
    if (best < 0 || numa(item) < numa(best)) best = item;
  }
  return best >= 0 ? best : cpu(-1);
}

int DetectPlaces::above(const PciFacts& facts) {
  // A switch is an upstream port with downstream ports below; it stands here by its upstream port. So the next element
  // up is two bridges up; a single bridge is the root port, which is the CPU's.
  const PciFacts* port = find(facts.parent);
  const PciFacts* upstream = port == nullptr ? nullptr : find(port->parent);
  if (upstream == nullptr) return cpu(facts.numa);
  const bool circle = std::find(way_.begin(), way_.end(), upstream) != way_.end();
  if (!circle && way_.size() < kMaxBridges) return switchOf(*upstream);
  info(kGraph,
       "PCI function {} stands below bridge {}, {}: it is taken to hang at its CPU; is /sys (or HWLOC_XMLFILE) right?",
       facts.busId, port->busId,
       circle ? fmt::format("which stands below {}: a circle", upstream->busId) : std::string("too deep to be true"));
  return cpu(facts.numa);
}

int DetectPlaces::switchOf(const PciFacts& facts) {
  if (const auto known = tree_.pciItems().find(facts.busId); known != tree_.pciItems().end()) return known->second;
  way_.push_back(&facts);
  const int parent = above(facts);
  way_.pop_back();
  return tree_.addPci(parent, facts.busId);
}

int DetectPlaces::pci(const std::string& busId, const char* classIfHidden) {
  if (const auto known = tree_.pciItems().find(busId); known != tree_.pciItems().end()) return known->second;
  const PciFacts* facts = find(busId);
  const int item = facts != nullptr ? switchOf(*facts) : tree_.addPci(cpu(-1), busId);
  if (facts == nullptr) tree_.of(item).self.set("class", classIfHidden);
  return item;
}

void DetectPlaces::offerLink(int pci, int generation, int width) {
  XmlElement& element = tree_.of(pci).self;
  const std::string* busId = element.find("busid");
  const PciFacts* facts = busId == nullptr ? nullptr : find(normalBusId(*busId));
  if (facts != nullptr && !facts->linkSpeed.empty() && facts->linkWidth > 0) return;
  completePci(element, facts, "0x030200");
  const std::string* speed = element.find("link_speed");
  const std::string* lanes = element.find("link_width");
  if (speed->empty()) element.set("link_speed", speedOf(generation));
  if (*lanes == "0" || lanes->empty()) element.set("link_width", std::to_string(width));
}

void DetectPlaces::addAllCpus() {
  for (const NumaNodeFacts& node : host_.numaNodes) addCpu(node.id);
  if (host_.numaNodes.empty() && !host_.processor.arch.empty()) addCpu(0);
}

void DetectPlaces::complete() {
  for (const auto& [busId, item] : tree_.pciItems()) {
    const PciFacts* facts = find(busId);
    XmlElement& element = tree_.of(item).self;
    if (facts != nullptr || element.find("class") != nullptr) completePci(element, facts, "0x060400");
  }
  const ProcessorFacts& processor = host_.processor;
  std::unordered_map<int, const NumaNodeFacts*> nodes;
  for (const NumaNodeFacts& node : host_.numaNodes) nodes.try_emplace(node.id, &node);
  for (const int item : tree_.items("cpu")) {
    XmlElement& element = tree_.of(item).self;
    const auto node = nodes.find(numberOf(element, "numaid", -1));
    if (node != nodes.end() && !node->second->affinity.empty()) offer(element, "affinity", node->second->affinity);
    if (processor.arch.empty()) continue;
    offer(element, "arch", processor.arch);
    if (*element.find("arch") != processor.arch) continue;
    // Whoever reads the file asks for it on x86.
    const bool nameless = processor.vendor.empty() && processor.arch == "x86_64";
    if (nameless) offer(element, "vendor", "unknown");
    if (!processor.vendor.empty()) offer(element, "vendor", processor.vendor);
    if (processor.family >= 0) offer(element, "familyid", std::to_string(processor.family));
    if (processor.model >= 0) offer(element, "modelid", std::to_string(processor.model));
  }
}

}  // namespace tutti::topo
