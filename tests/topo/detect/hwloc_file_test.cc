#include "topo/detect/hwloc_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "base/hwloc/calls.h"
#include "topo/detect/detect_facts.h"
#include "topo/detect/hwloc.h"

namespace tutti::topo {
namespace {

using namespace tutti::test;

std::string fileOf(const std::string& name) {
  std::ifstream file(test::fixture("detect/" + name + ".hwloc.xml"));
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string complaint(const std::string& text) {
  std::string why;
  EXPECT_FALSE(checkedHwlocXml(text, why)) << text.substr(0, 1000);
  EXPECT_NE(why, "");
  return why;
}

constexpr const char* kSets = R"( cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1")";

std::string machine(const std::string& inside) {
  return "<topology version=\"2.0\"><object type=\"Machine\"" + std::string(kSets) + ">" + inside +
         "</object></topology>";
}

std::string object(const std::string& type, const std::string& sets = kSets, const std::string& inside = "") {
  return "<object type=\"" + type + "\"" + sets + ">" + inside + "</object>";
}

TEST(HwlocFileCheck, LeavesWhatHwlocWritesAndNothingElse) {
  std::string why;
  const auto kept = checkedHwlocXml(
      "<?xml version=\"1.0\"?><!DOCTYPE topology SYSTEM \"hwloc2.dtd\"><topology version=\"2.0\">"
      "<object type=\"Machine\"" +
          std::string(kSets) +
          "><info name=\"a\" value=\"b\"/><info name=\"a\"/><page_type size=\"4096\"/>"
          "<object type=\"Misc\" cpuset=\"x\"/><userdata length=\"1000000\"/></object>"
          "<distances2 nbobjs=\"99\"/><support name=\"x\"/></topology>",
      why);
  ASSERT_TRUE(kept) << why;
  EXPECT_EQ(*kept, "<topology version=\"2.0\"><object type=\"Machine\"" + std::string(kSets) +
                       "><info name=\"a\" value=\"b\"/></object></topology>");
}

TEST(HwlocFileCheck, RefusesOtherFiles) {
  EXPECT_NE(complaint("<topology>\n<object").find("line 2: not well formed: "), std::string::npos);
  EXPECT_NE(complaint("<system version=\"1\"/>").find("no topology of hwloc 2"), std::string::npos);
  EXPECT_NE(complaint("<topology><object type=\"Machine\"/></topology>").find("no topology of hwloc 2"),
            std::string::npos);
  EXPECT_EQ(complaint("<topology version=\"2.0\"/>"), "there is no machine in it");
}

TEST(HwlocFileCheck, RefusesObjectsThatDoNotFit) {
  std::string why;
  EXPECT_TRUE(checkedHwlocXml(machine(object("PU") + object("NUMANode") + object("PCIDev", "")), why)) << why;
  EXPECT_NE(complaint(machine(object("Gpu"))).find("object Gpu  is of a type that is not known there"),
            std::string::npos);
  EXPECT_NE(complaint(machine(object("Machine"))).find("not known there"), std::string::npos);
  EXPECT_NE(complaint(machine(object("PCIDev", "", object("PU")))).find("not known there"), std::string::npos);
  EXPECT_NE(complaint(machine(object("PU", ""))).find("has no sets"), std::string::npos);
  for (const char* set : {"", "1", "0xg", "0xf...f", "0x123456789", "0x1,0x", "0x1;0x1"}) {
    std::string sets = kSets;
    sets.replace(sets.find("0x1"), 3, set);
    EXPECT_NE(complaint(machine(object("Package", sets))).find("has no sets"), std::string::npos) << set;
  }
  std::string other = kSets;
  for (std::size_t at = other.find("0x1"); at != other.npos; at = other.find("0x1")) other.replace(at, 3, "0x2");
  EXPECT_NE(complaint(machine(object("Package", other))).find("do not fit"), std::string::npos);
}

TEST(HwlocFileCheck, RefusesMoreThanAnyMachineHas) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "<object type=\"Bridge\">";
  for (int i = 0; i < 100000; ++i) deep += "</object>";
  EXPECT_NE(complaint(machine(deep)).find("deeper than in any machine"), std::string::npos);
  std::string many;
  for (int i = 0; i < 70000; ++i) many += "<object type=\"OSDev\"/>";
  EXPECT_NE(complaint(machine(many)).find("more than any machine has"), std::string::npos);
  std::string wide = kSets;
  std::string set = "0x1";
  for (int i = 0; i < 2000; ++i) set += ",0x1";
  wide.replace(wide.find("0x1"), 3, set);
  EXPECT_NE(complaint(machine(object("Package", wide))).find("has no sets"), std::string::npos);
}

/// Takes lines out, doubles and swaps them, takes attributes out, changes characters.
std::string damaged(const std::string& whole, std::mt19937& random) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < whole.size();) {
    const std::size_t end = std::min(whole.find('\n', at), whole.size());
    lines.push_back(whole.substr(at, end - at));
    at = end + 1;
  }
  const auto below = [&](std::size_t most) { return static_cast<std::size_t>(random() % most); };
  for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
    const std::size_t line = below(lines.size());
    std::string& text = lines[line];
    switch (below(5)) {
      case 0:
        text.clear();
        break;
      case 1:
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(below(lines.size())), std::string(text));
        break;
      case 2:
        std::swap(text, lines[below(lines.size())]);
        break;
      case 3:
        if (const std::size_t space = text.find(' ', below(text.size() + 1)); space != text.npos) {
          text.erase(space, std::min(text.find('"', text.find('"', space) + 1), text.size() - 1) + 1 - space);
        }
        break;
      default:
        if (!text.empty()) text[below(text.size())] = "\"<9x0 \xff"[below(7)];
    }
  }
  std::string joined;
  for (const std::string& text : lines) joined += text + "\n";
  return joined;
}

TEST(HwlocFileCheck, LetsHwlocSurviveDamage) {
  if (Hwloc::instance().calls() == nullptr) GTEST_SKIP() << Hwloc::instance().text();
  std::mt19937 random(1);
  int read = 0;
  int refused = 0;
  for (const char* name : {"ws_pcie4", "gb200_tray", "vm_a6000x2"}) {
    const std::string whole = fileOf(name);
    for (int i = 0; i < 700; ++i) {
      std::string why;
      const auto host = readHwlocXml(damaged(whole, random), why);
      ++(host ? read : refused);
      if (!host) {
        EXPECT_NE(why, "");
        continue;
      }
      DetectInput input;
      input.host = *host;
      input.gpus = {{.busId = "0000:01:00.0", .sm = 86}};
      EXPECT_TRUE(detectTopology(input).ok());
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace tutti::topo
