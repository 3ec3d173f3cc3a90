#include "comm/agreement/affinity.h"

#include <gtest/gtest.h>

#include "base/threads/cpu_set.h"
#include "comm/agreement/own_machine.h"
#include "comm/settings/affinity_settings.h"
#include "topo/xml/xml.h"

namespace tutti::comm {
namespace {

OwnMachine machineWith(const char* text) {
  return ownMachine(topo::parseXml(text, "test").value());
}

constexpr const char* kTwoNodes = R"(<system version="1">
  <cpu numaid="0" affinity="00000000,0000000f"><pci busid="0000:10:00.0"><gpu dev="0"/></pci></cpu>
  <cpu numaid="1" affinity="00000000,000000f0">
    <pci busid="0000:20:00.0"><pci busid="0000:21:00.0"><gpu dev="1"/></pci></pci>
  </cpu>
  <cpu numaid="2"><pci busid="0000:30:00.0"><gpu dev="2"/></pci></cpu>
</system>)";

std::string listed(const std::optional<cpu_set_t>& set) {
  return set ? cpuListText(*set) : "unknown";
}

TEST(Affinity, ProcessorsNearAGpuAreThoseOfItsNumaNode) {
  const OwnMachine machine = machineWith(kTwoNodes);
  EXPECT_EQ(listed(processorsNear(machine, 0x10000)), "0-3");
  EXPECT_EQ(listed(processorsNear(machine, 0x21000)), "4-7");
  EXPECT_EQ(listed(processorsNear(machine, 0x30000)), "unknown") << "its node says nothing";
  EXPECT_EQ(listed(processorsNear(machine, 0x40000)), "unknown") << "not there";
  EXPECT_EQ(listed(processorsNear(OwnMachine(), 0x10000)), "unknown");
}

TEST(Affinity, IsNearTheGpuWithinTheJob) {
  const Affinity affinity = affinityFor({}, 2, parseCpuList("0-63"), parseCpuList("0-31"));
  EXPECT_EQ(listed(affinity.processors), "0-31");
  EXPECT_EQ(affinity.text, "Affinity for GPU 2 is 0-31. (GPU affinity = 0-63 ; CPU affinity = 0-31).");
  EXPECT_EQ(
      listed(
          affinityFor({.proxyCpus = "", .ignoreJob = true}, 2, parseCpuList("0-63"), parseCpuList("0-31")).processors),
      "0-63");
}

TEST(Affinity, BindsNobodyWhereNothingIsLeftOrKnown) {
  const Affinity apart = affinityFor({}, 0, parseCpuList("4-7"), parseCpuList("0-3"));
  EXPECT_FALSE(apart.processors.has_value());
  EXPECT_EQ(apart.text, "Affinity for GPU 0 is empty, ignoring.");
  EXPECT_FALSE(affinityFor({}, 0, std::nullopt, parseCpuList("0-3")).processors.has_value());
}

TEST(Affinity, IsWhatTheUserSays) {
  EXPECT_EQ(listed(affinityFor({.proxyCpus = "1,3"}, 0, parseCpuList("4-7"), parseCpuList("4-7")).processors), "1,3");
}

TEST(Affinity, AListThatIsNoneIsSaidToBeIgnored) {
  const Affinity affinity = affinityFor({.proxyCpus = "one"}, 0, parseCpuList("4-7"), parseCpuList("4-7"));
  EXPECT_EQ(listed(affinity.processors), "4-7");
  EXPECT_EQ(affinity.complaint, "Invalid value one for NCCL_PROXY_CPUSET, using default unset.");
}

}  // namespace
}  // namespace tutti::comm
