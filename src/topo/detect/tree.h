// The tree that detection builds: elements that can be added anywhere, and where a PCI function hangs in it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "topo/detect/detect.h"
#include "topo/xml/xml.h"

namespace tutti::topo {

/// Elements by number; numbers stay when others are added.
class DetectTree {
 public:
  static constexpr int kRoot = 0;

  struct Item {
    XmlElement self;  ///< without its children
    int parent = -1;
    std::vector<int> children;
    bool removed = false;
  };

  DetectTree();
  /// Replaces everything by the elements of a file.
  void import(const XmlElement& root);
  /// Valid until the next add().
  Item& of(int item) { return items_[static_cast<std::size_t>(item)]; }
  const Item& of(int item) const { return items_[static_cast<std::size_t>(item)]; }
  int add(int parent, std::string name);
  int addPci(int parent, const std::string& busId);
  /// First child of that name, -1: none.
  int child(int parent, std::string_view name) const;
  void remove(int item);
  void removeChildren(int parent, std::string_view name);
  /// All elements of that name, in the order of adding.
  std::vector<int> items(std::string_view name) const;
  /// By bus id in its normal form.
  const std::map<std::string, int>& pciItems() const { return pci_; }
  /// CPUs by number, PCI siblings by bus id, NICs without PCI last; links stay in their order.
  void sortSiblings();
  XmlElement assemble() const { return assemble(kRoot); }

 private:
  void importChildren(const XmlElement& element, int item);
  XmlElement assemble(int item) const;
  void setPci(int item);

  std::vector<Item> items_;
  std::map<std::string, int> pci_;
};

/// Knows where things of a host belong, and makes the way to them.
class DetectPlaces {
 public:
  DetectPlaces(const HostFacts& host, DetectTree& tree);
  /// Facts of a function, null: the system does not show it.
  const PciFacts* find(const std::string& busId) const;
  /// The element of the CPU of a NUMA node; of the first CPU if there is no such node.
  int cpu(int numa);
  /// For what hangs nowhere in particular: the CPU of lowest number that has something already, so that it is near.
  int anyCpu();
  /// The element of a PCI function, made with the switches above it. `classIfHidden` where the system does not show it.
  int pci(const std::string& busId, const char* classIfHidden);
  /// What a driver says of a GPU's PCIe link, for where the system does not know it.
  void offerLink(int pci, int generation, int width);
  /// A <cpu> for every NUMA node.
  void addAllCpus();
  /// Adds what elements lack and the system knows.
  void complete();

 private:
  int findCpu(int numa) const;
  int addCpu(int numa);
  /// The element that a function's element hangs under: the switch above it, or its CPU.
  int above(const PciFacts& facts);
  int switchOf(const PciFacts& facts);

  const HostFacts& host_;
  DetectTree& tree_;
  std::unordered_map<std::string, const PciFacts*> pci_;
  std::vector<const PciFacts*> way_;  ///< functions whose place is being looked for, each below the next
};

/// Sets an attribute that is not there.
void offer(XmlElement& element, std::string_view attribute, std::string value);

}  // namespace tutti::topo
