// Machines drawn by lot, from a seed, and small changes to them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topo/search/topology.h"
#include "topo/xml/xml.h"

namespace tutti::test {

/// Numbers from a seed; the same on every computer.
class Lot {
 public:
  explicit Lot(std::uint64_t seed) : state_(seed * 2 + 1) {}
  /// 0 .. n-1
  int below(int n);
  int between(int low, int high) { return low + below(high - low + 1); }
  bool oneIn(int n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

enum class NvLinks : std::uint8_t { None, Pairs, Mesh, Full, Switch };

/// What a machine is made of. GPUs stand in places 0..n-1, `perBranch` of them under each branch of the PCI tree.
struct MachineSketch {
  int sockets = 1;
  int cpu = 0;  ///< index into the kinds of CPU the generator knows
  int sm = 80;
  int depth = 1;  ///< switches between a CPU and a GPU: 0, 1 or 2
  int perBranch = 1;
  int pciGeneration = 4;
  NvLinks kind = NvLinks::None;
  int switchLinks = 0;                    ///< NVLinks of each GPU to NVSwitches
  std::vector<int> dev;                   ///< NVML index by place
  std::vector<std::vector<int>> nvLinks;  ///< between two places, symmetrical
  struct Nic {
    int branch = 0;
    int megabits = 100000;
    int rail = -1;
    int ports = 1;  ///< nets of one adapter
  };
  std::vector<Nic> nics;
  int hosts = 1;
  bool c2c = false;  ///< between each GPU and its CPU

  int gpus() const { return static_cast<int>(dev.size()); }
  int branches() const { return (gpus() + perBranch - 1) / perBranch; }
};

MachineSketch drawMachine(std::uint64_t seed);
/// Few words for messages.
std::string describe(const MachineSketch& sketch);
topo::XmlElement toXml(const MachineSketch& sketch);

/// With NVLinks added where some are already: one more to the switches, or between one pair. False: there are none.
bool addNvLink(MachineSketch& sketch, Lot& lot);
/// The GPUs' NVML indices dealt anew.
void renumberGpus(MachineSketch& sketch, Lot& lot);

/// The machine with all its GPUs, and its ways.
Result<topo::Topology> buildSketch(const MachineSketch& sketch, bool interNode);

}  // namespace tutti::test
