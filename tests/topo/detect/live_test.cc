// What is found out about the machine itself: with NVML and a driver made up for it, and on the software GPU.
#include "topo/detect/live.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>

#include "base/hwloc/calls.h"
#include "support/log_capture.h"
#include "topo/detect/detect_facts.h"
#include "topo/xml/topology_xml.h"

namespace tutti::topo {
namespace {

using namespace tutti::test;

/// A driver that shows two devices of the made-up NVML's machine (tests/gpu/fake_nvml.c), GPU 5 first, as if
/// CUDA_VISIBLE_DEVICES were 5,4.
gpu::Driver twoDevices() {
  gpu::Driver driver;
  driver.cuDeviceGetCount = [](int* count) {
    *count = 2;
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGet = [](CUdevice* device, int ordinal) {
    *device = ordinal;
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetPCIBusId = [](char* text, int size, CUdevice device) {
    std::snprintf(text, static_cast<std::size_t>(size), "0000:1%c:00.0", device == 0 ? 'B' : 'A');
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 1;
    return CUDA_SUCCESS;
  };
  return driver;
}

std::string live(const LiveRequest& request) {
  const auto found = detectLive(request);
  EXPECT_TRUE(found.ok());
  if (!found.ok() || !found.value()) return {};
  return writeXml(found.value()->xml);
}

TEST(LiveMachine, IsPutTogetherFromNvmlAndDriver) {
  const gpu::Driver driver = twoDevices();
  LiveRequest request;
  request.driver = &driver;
  request.systemRoot = "/nonexistent";
  const std::string text = live(request);
  EXPECT_NE(
      text.find("<pci busid=\"0000:1b:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
                "      <gpu dev=\"5\" sm=\"91\" gdr=\"1\">\n"
                "        <nvlink target=\"0000:1a:00.0\" count=\"2\" tclass=\"0x030200\"/>\n"
                "        <nvlink target=\"fffffff:ff:ff.0\" count=\"1\" tclass=\"0x068000\"/>\n"
                "      </gpu>\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("<gpu dev=\"0\" sm=\"90\">\n        <c2c bw=\"44712\" count=\"9\"/>"), std::string::npos)
      << "GPUDirect of a kind that the driver does not show is unknown: " << text;
  EXPECT_NE(text.find("<gpu dev=\"1\" sm=\"91\" gdr=\"1\"/>"), std::string::npos) << "like those of its kind: " << text;
  EXPECT_EQ(text.find("target=\"0000:19:00.0\""), std::string::npos) << "GPU 3 is divided: " << text;
}

TEST(LiveMachine, TakesInstancesOfOneGpuForOneAndKeepsWhatNvmlDoesNotKnow) {
  gpu::Driver driver = twoDevices();
  driver.cuDeviceGetCount = [](int* count) {
    *count = 4;
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetPCIBusId = [](char* text, int size, CUdevice device) {
    if (device == 3) return CUDA_ERROR_NOT_SUPPORTED;
    std::snprintf(text, static_cast<std::size_t>(size), "0000:%s:00.0", device == 2 ? "2A" : "19");
    return CUDA_SUCCESS;
  };
  driver.cuGetErrorName = [](CUresult, const char** text) {
    *text = "CUDA_ERROR_NOT_SUPPORTED";
    return CUDA_SUCCESS;
  };
  LiveRequest request;
  request.driver = &driver;
  request.systemRoot = "/nonexistent";
  const std::string text = live(request);
  EXPECT_NE(text.find("0000:19:00.0"), std::string::npos) << text;
  EXPECT_EQ(text.find("0000:19:00.0"), text.rfind("0000:19:00.0")) << "two instances on one GPU: " << text;
  EXPECT_NE(text.find("<pci busid=\"0000:2a:00.0\""), std::string::npos) << text;
  EXPECT_NE(text.find("<gpu dev=\"6\" sm=\"91\" gdr=\"1\"/>"), std::string::npos) << "the first free number: " << text;
  EXPECT_NE(test::capturedText().find("CUDA device 3 has no bus id"), std::string::npos);
}

TEST(LiveMachine, TellsRefusedPairsByBusIdAndWhy) {
  LiveRequest request;
  request.systemRoot = "/nonexistent";
  const auto found = detectLive(request);
  ASSERT_TRUE(found.ok() && found.value());
  const std::string why = "chipset not supported";
  EXPECT_EQ(found.value()->peersRefused, (std::vector<PeerRefusal>{{0x17000, 0x18000, why}, {0x18000, 0x17000, why}}));
}

TEST(LiveMachine, SaysWhatIsUnknown) {
  LiveRequest request;
  request.systemRoot = "/nonexistent";
  live(request);
  const std::string log = test::capturedText();
  EXPECT_NE(log.find("shows no NUMA nodes"), std::string::npos) << log;
  EXPECT_NE(log.find("shows no PCI functions"), std::string::npos) << log;
  EXPECT_NE(log.find("NvLinkState of GPU 1"), std::string::npos) << log;
}

TEST(LiveMachine, TakesPciFromTheSystem) {
  const test::RecordedSystem system("dgx_h100");
  system.put("sys/bus/pci/devices/0000:18:00.0/vendor", "0x10de\n");
  LiveRequest request;
  request.systemRoot = system.root();
  const std::string text = live(request);
  EXPECT_NE(text.find("<pci busid=\"0000:16:00.0\" class=\"0x060400\""), std::string::npos) << text;
  EXPECT_NE(text.find("      <pci busid=\"0000:18:00.0\" class=\"0x030200\""), std::string::npos) << text;
}

TEST(LiveMachine, TakesWhatIsHiddenFromAFileOfHwloc) {
  const test::RecordedSystem system("vm_a6000x2");
  LiveRequest request;
  request.systemRoot = system.root();
  ::setenv("HWLOC_XMLFILE", test::fixture("detect/gb200_tray.hwloc.xml").c_str(), 1);
  const auto input = gatherFacts(request);
  ::setenv("HWLOC_XMLFILE", "/nonexistent", 1);
  const auto missing = gatherFacts(request);
  system.put("broken.xml", "<topology>\n<object>\n</topology>");
  ::setenv("HWLOC_XMLFILE", (system.root() + "/broken.xml").c_str(), 1);
  const bool hwloc = Hwloc::instance().calls() != nullptr;
  test::expectLog("broken.xml: line 3: not well formed");
  const auto broken = gatherFacts(request);
  ::setenv("HWLOC_XMLFILE", "/", 1);
  test::expectLog("cannot read / (HWLOC_XMLFILE): it is a directory");
  const auto folder = gatherFacts(request);
  ::unsetenv("HWLOC_XMLFILE");
  ASSERT_TRUE(input.ok());
  if (hwloc) {
    EXPECT_EQ(input.value().host.numaNodes.size(), 2u);
    EXPECT_FALSE(input.value().host.pci.empty());
  } else {
    test::expectLog(Hwloc::instance().text());
  }
  EXPECT_EQ(input.value().host.processor.vendor, "AuthenticAMD") << "/proc/cpuinfo was there";
  EXPECT_TRUE(missing.ok()) << "as with a topology file that is not there";
  EXPECT_NE(test::capturedText().find("HWLOC_XMLFILE=/nonexistent: No such file or directory"), std::string::npos);
  EXPECT_TRUE(broken.ok()) << "what is hidden stays unknown";
  EXPECT_TRUE(folder.ok());
}

TEST(LiveMachine, ReadsNoEndlessFileOfHwloc) {
  LiveRequest request;
  request.systemRoot = "/nonexistent";
  ::setenv("HWLOC_XMLFILE", "/dev/zero", 1);
  test::expectLog("cannot read /dev/zero (HWLOC_XMLFILE): it is a device");
  const auto input = gatherFacts(request);
  ::unsetenv("HWLOC_XMLFILE");
  EXPECT_TRUE(input.ok());
}

TEST(LiveMachine, IsTheSameWithHwlocAndWithout) {
  LiveRequest request;
  const std::string one = live(request);
  const std::string said = test::capturedText();
  request.hwloc = false;
  EXPECT_EQ(one, live(request));
  EXPECT_NE(test::capturedText().find("The machine is read from /sys: hwloc is not asked for"), std::string::npos);
  if (Hwloc::instance().calls() == nullptr) {
    EXPECT_NE(said.find("The machine is read from /sys: " + Hwloc::instance().text()), std::string::npos) << said;
    GTEST_SKIP() << Hwloc::instance().text();
  }
  EXPECT_NE(said.find("The machine is read by hwloc 2."), std::string::npos) << said;
}

TEST(LiveMachine, DoesNotTakeAFileOfHwlocForTheSystem) {
  ::setenv("HWLOC_XMLFILE", test::fixture("detect/gb200_tray.hwloc.xml").c_str(), 1);
  const std::string with = live({});
  ::unsetenv("HWLOC_XMLFILE");
  EXPECT_EQ(with, live({})) << "this system hides nothing";
}

TEST(LiveMachine, KnowsItsCpusHere) {
  const std::string text = live({});
  EXPECT_NE(text.find("<cpu numaid="), std::string::npos) << text;
  EXPECT_NE(text.find("arch="), std::string::npos) << text;
}

TEST(TopologyFile, ThatIsMissingIsOnlySaid) {
  LiveRequest request;
  request.topologyFile = "/nonexistent/topology.xml";
  EXPECT_NE(live(request).find("<cpu"), std::string::npos);
  EXPECT_NE(test::capturedText().find("/nonexistent/topology.xml"), std::string::npos);
}

TEST(TopologyFile, ThatAProviderLeftIsRead) {
  const test::RecordedSystem system("vm_no_gpu");
  system.put(
      "var/run/nvidia-topologyd/virtualTopology.xml",
      "<system version=\"1\"><cpu numaid=\"1\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\">"
      "<pci busid=\"0000:0f:00.0\" class=\"0x060400\"><pci busid=\"0000:1b:00.0\"/></pci></cpu></system>");
  LiveRequest request;
  request.systemRoot = system.root();
  const std::string text = live(request);
  EXPECT_NE(text.find("<pci busid=\"0000:1b:00.0\" class=\"0x030200\""), std::string::npos) << text;
  EXPECT_NE(text.find("        <gpu dev=\"5\""), std::string::npos) << "below the file's switch: " << text;
}

TEST(TopologyFile, ThatIsBrokenIsAnError) {
  const test::RecordedSystem system("vm_no_gpu");
  system.put("broken.xml", "<system version=\"1\">\n<cpu numaid=\"0\">");
  LiveRequest request;
  request.topologyFile = system.root() + "/broken.xml";
  test::expectLog("broken.xml");
  EXPECT_EQ(detectLive(request).status().code(), ncclInvalidUsage);
}

/// Runs `check` in a child that has not met the driver yet and has these variables; returns its exit status.
int onSoftwareGpu(const std::vector<std::pair<const char*, std::string>>& variables,
                  const std::function<bool(const gpu::Driver&)>& check) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const auto& [name, value] : variables) ::setenv(name, value.c_str(), 1);
    const auto driver = gpu::loadDriver();
    ::_exit(!driver.ok() ? 2 : check(*driver.value()) ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + status;
}

std::string liveOn(const gpu::Driver& driver) {
  LiveRequest request;
  request.driver = &driver;
  const auto found = detectLive(request);
  return found.ok() && found.value() ? writeXml(found.value()->xml) : std::string();
}

TEST(SoftwareGpu, KnowsNothingWithoutAFile) {
  EXPECT_EQ(onSoftwareGpu({}, [](const gpu::Driver& driver) { return liveOn(driver).empty(); }), 0);
}

TEST(SoftwareGpu, IsTheMachineOfItsFile) {
  for (const char* name : {"own_dgx_h100", "own_gb200_tray", "own_dgx1v"}) {
    const XmlElement machine = test::machineFile(name);
    const auto same = [&](const gpu::Driver& driver) {
      LiveRequest request;
      request.driver = &driver;
      const auto found = detectLive(request);
      return found.ok() && found.value() && test::differenceOfWays(machine, found.value()->xml, true).empty() &&
             writeXml(found.value()->xml) == writeXml(machine);
    };
    const std::string path = test::fixture(std::string("topo/") + name + ".xml");
    EXPECT_EQ(onSoftwareGpu({{"SOFTGPU_TOPO", path}}, same), 0) << name;
    EXPECT_EQ(onSoftwareGpu({{"SOFTGPU_TOPO", path}, {"CUDA_VISIBLE_DEVICES", "1"}}, same), 0) << "all of it: " << name;
  }
}

TEST(SoftwareGpu, NumbersTheGpusOfAPartOfAMachine) {
  const test::RecordedSystem folder("vm_no_gpu");
  folder.put("part.xml",
             "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:40:00.0\"><gpu dev=\"6\" sm=\"90\"/></pci>"
             "<pci busid=\"0000:30:00.0\"><gpu dev=\"4\" sm=\"90\"/></pci></cpu></system>");
  const auto counted = [](const gpu::Driver& driver) {
    const std::string text = liveOn(driver);
    return text.find("0000:40:00.0\">\n      <gpu dev=\"1\"") != text.npos &&
           text.find("0000:30:00.0\">\n      <gpu dev=\"0\"") != text.npos;
  };
  EXPECT_EQ(onSoftwareGpu({{"SOFTGPU_TOPO", folder.root() + "/part.xml"}}, counted), 0);
}

TEST(SoftwareGpu, IsOneHostOfAFileOfSeveral) {
  const test::RecordedSystem folder("vm_no_gpu");
  folder.put("rack.xml",
             "<system version=\"1\">\n"
             "<cpu host_hash=\"0xa\" numaid=\"0\"><pci busid=\"0000:30:00.0\"><gpu dev=\"0\" sm=\"90\"/></pci></cpu>\n"
             "<cpu host_hash=\"0xb\" numaid=\"0\"><pci busid=\"0000:31:00.0\"><gpu dev=\"0\" sm=\"100\"/></pci></cpu>\n"
             "<cpu host_hash=\"00A\" numaid=\"1\"><pci busid=\"0000:32:00.0\"><gpu dev=\"1\" sm=\"90\"/></pci></cpu>\n"
             "</system>");
  const std::string path = folder.root() + "/rack.xml";
  const auto has = [](const gpu::Driver& driver, const char* busId) {
    return liveOn(driver).find(busId) != std::string::npos;
  };
  const auto first = [&](const gpu::Driver& driver) {
    return has(driver, "30:00.0") && !has(driver, "31:00.0") && has(driver, "32:00.0");
  };
  const auto second = [&](const gpu::Driver& driver) {
    return !has(driver, "30:00.0") && has(driver, "31:00.0") && !has(driver, "32:00.0");
  };
  EXPECT_EQ(onSoftwareGpu({{"SOFTGPU_TOPO", path}}, first), 0);
  EXPECT_EQ(onSoftwareGpu({{"SOFTGPU_TOPO", path}, {"SOFTGPU_HOST", "1"}}, second), 0);
  const auto nothing = [](const gpu::Driver& driver) { return liveOn(driver).empty(); };
  EXPECT_EQ(onSoftwareGpu({{"SOFTGPU_TOPO", path}, {"SOFTGPU_HOST", "2"}}, nothing), 0) << "there are two";
}

TEST(SoftwareGpu, IgnoresFilesOfNoUse) {
  const test::RecordedSystem folder("vm_no_gpu");
  const auto nothing = [](const gpu::Driver& driver) {
    int count = 0;
    return driver.cuDeviceGetCount(&count) == CUDA_SUCCESS && count == 4 && liveOn(driver).empty();
  };
  const char* broken[] = {
      "",
      "<system version=\"1\">",
      "<graphs version=\"1\"/>",
      "<system version=\"1\"/>",
      "<system version=\"1\"><cpu host_hash=\"rack\"><pci busid=\"0000:01:00.0\"><gpu/></pci></cpu></system>",
      "<system version=\"1\"><cpu><pci busid=\"here\"><gpu dev=\"0\"/></pci></cpu></system>",
      "<system version=\"1\"><cpu><pci busid=\"0000:01:00.0\"><gpu sm=\"100000\"/></pci></cpu></system>",
      "<system version=\"1\"><cpu><pci busid=\"0000:01:00.0\"><gpu/></pci>"
      "<pci busid=\"0000:01:00.0\"><gpu/></pci></cpu></system>"};
  for (const char* text : broken) {
    folder.put("broken.xml", text);
    EXPECT_EQ(onSoftwareGpu({{"SOFTGPU_TOPO", folder.root() + "/broken.xml"}}, nothing), 0) << text;
  }
  EXPECT_EQ(onSoftwareGpu({{"SOFTGPU_TOPO", folder.root()}}, nothing), 0) << "a folder";
  std::string deep = "<system version=\"1\"><cpu host_hash=\"1\"/><cpu host_hash=\"2\">";
  for (int i = 0; i < 200000; ++i) deep += "<pci>";
  for (int i = 0; i < 200000; ++i) deep += "</pci>";
  folder.put("deep.xml", deep + "</cpu></system>");
  EXPECT_EQ(onSoftwareGpu({{"SOFTGPU_TOPO", folder.root() + "/deep.xml"}}, nothing), 0);
}

}  // namespace
}  // namespace tutti::topo
