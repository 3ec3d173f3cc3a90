// Facts of recorded machines for the tests of detection.
#pragma once

#include <string>
#include <vector>

#include "topo/detect/detect.h"
#include "topo/search/topology.h"

namespace tutti::test {

/// The sources' folder tests/fixtures/`part`.
std::string fixture(const std::string& part);

/// What a machine shows in /sys and /proc: tests/fixtures/detect/NAME.sys, unpacked into a folder that goes when it
/// goes.
class RecordedSystem {
 public:
  explicit RecordedSystem(const std::string& name);
  RecordedSystem(const RecordedSystem&) = delete;
  ~RecordedSystem();
  const std::string& root() const { return root_; }
  /// Writes a file of the tree anew.
  void put(const std::string& path, const std::string& text) const;

 private:
  std::string root_;
};

/// tests/fixtures/topo/NAME.xml. A file that cannot be read fails the test.
topo::XmlElement machineFile(const std::string& name);

/// What the operating system would show of the machine: with a root port above each device and a downstream port below
/// each switch, which topology files leave out.
topo::HostFacts hostFactsOf(const topo::XmlElement& system);
/// What NVML and the driver would say of its GPUs.
std::vector<topo::GpuSourceFacts> gpuFactsOf(const topo::XmlElement& system);
/// What a network plugin would say of its NICs, by dev.
std::vector<topo::NetDeviceFacts> netFactsOf(const topo::XmlElement& system);

/// Fails the test if the host with the GPUs and NICs of tests/fixtures/topo/MACHINE.xml does not have that file's ways.
void expectMachine(const topo::HostFacts& host, const std::string& machine);

/// The first GPU or network whose ways are not the same in both files, used as a whole; empty: there is none.
std::string differenceOfWays(const topo::XmlElement& a, const topo::XmlElement& b, bool interNode);

}  // namespace tutti::test
