// Machines for tests: from text, and the known ones.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "topo/machine/build.h"
#include "topo/machine/path_settings.h"
#include "topo/search/topology.h"
#include "topo/xml/xml.h"

namespace tutti::test {

inline const char* const kIntel = "arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\"";
inline const char* const kAmd = "arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"25\" modelid=\"1\"";

inline std::string system(const std::string& cpus) {
  return "<system version=\"1\">" + cpus + "</system>";
}
inline std::string cpu(const std::string& attributes, const std::string& children, int numa = 0) {
  return "<cpu numaid=\"" + std::to_string(numa) + "\" " + attributes + ">" + children + "</cpu>";
}
/// `busId`: two digits. A Gen4 link of 16 lanes.
inline std::string pci(const std::string& busId, const std::string& children, const std::string& more = "") {
  return "<pci busid=\"0000:" + busId + ":00.0\" class=\"0x060400\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\" " +
         more + ">" + children + "</pci>";
}
inline std::string gpu(const std::string& busId, int dev, const std::string& links = "", int sm = 80) {
  const std::string number = std::to_string(dev);
  return pci(busId, "<gpu dev=\"" + number + "\" sm=\"" + std::to_string(sm) + "\" rank=\"" + number + "\" gdr=\"1\">" +
                        links + "</gpu>");
}
inline std::string net(int dev, const std::string& more = "") {
  return "<net name=\"n" + std::to_string(dev) + "\" dev=\"" + std::to_string(dev) +
         "\" speed=\"200000\" port=\"1\" gdr=\"1\" " + more + "/>";
}
inline std::string nic(const std::string& busId, const std::string& nets) {
  return pci(busId, "<nic>" + nets + "</nic>");
}

inline topo::XmlElement parsed(const std::string& text) {
  const auto element = topo::parseXml(text, "t.xml");
  EXPECT_TRUE(element.ok()) << text;
  return element.ok() ? element.value() : topo::XmlElement{};
}

inline topo::Machine built(const std::string& text) {
  auto machine = topo::buildMachine(parsed(text));
  EXPECT_TRUE(machine.ok()) << text;
  return machine.ok() ? std::move(machine).value() : topo::Machine{};
}

inline std::string fixtures() {
  return std::string(std::getenv("TUTTI_TEST_SOURCE_ROOT")) + "/tests/fixtures/topo/";
}

inline topo::XmlElement known(const std::string& name) {
  const auto element = topo::readXmlFile(fixtures() + name + ".xml");
  EXPECT_TRUE(element.ok()) << name;
  return element.ok() ? element.value() : topo::XmlElement{};
}

/// All GPUs of a known machine; without a rank as a file from which nobody took one.
inline topo::Machine knownMachine(const std::string& name) {
  auto machine = topo::buildMachine(known(name));
  EXPECT_TRUE(machine.ok()) << name;
  return machine.ok() ? std::move(machine).value() : topo::Machine{};
}

inline topo::Topology topologyOf(const std::string& name, const topo::TopologyUse& use = {},
                                 const topo::PathSettings& settings = {}) {
  auto topology = topo::buildTopology(known(name), use, settings);
  EXPECT_TRUE(topology.ok()) << name;
  return topology.ok() ? std::move(topology).value() : topo::Topology{};
}

inline int at(const topo::Machine& machine, topo::NodeKind kind, std::size_t place) {
  return machine.nodes(kind)[place];
}
inline float bandwidth(const topo::Machine& machine, int from, int to, topo::LinkKind kind) {
  const int link = machine.findLink(from, to, kind);
  return link < 0 ? 0 : machine.link(link).bandwidth;
}

}  // namespace tutti::test
