#include "topo/xml/xml.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "support/log_capture.h"

namespace tutti::topo {
namespace {

constexpr const char* kXmlOrigin = "a.xml";

TEST(Xml, ReadsElementsAttributesAndLines) {
  const auto root = parseXml(
      "<system version=\"1\">\n"
      "  <!-- <cpu>\n -->\n"
      "  <cpu numaid='0'  arch=\"it's\" />\n"
      "  <cpu>\n"
      "    <pci busid=\"0\"\n"
      "         class=\"1\"><gpu/></pci>\n"
      "  </cpu>\n"
      "</system>\n",
      kXmlOrigin);
  ASSERT_TRUE(root.ok());
  const XmlElement& system = root.value();
  EXPECT_EQ(system.name, "system");
  EXPECT_EQ(system.line, 1);
  ASSERT_EQ(system.children.size(), 2u);
  EXPECT_EQ(system.children[0].line, 4);
  EXPECT_EQ(*system.children[0].find("arch"), "it's");
  EXPECT_EQ(system.children[0].find("vendor"), nullptr);
  const XmlElement& pci = system.children[1].children.at(0);
  EXPECT_EQ(pci.line, 6);
  EXPECT_EQ(*pci.find("class"), "1");
  EXPECT_EQ(pci.children.at(0).line, 7);
}

TEST(Xml, AcceptsPrologTabsAndByteOrderMark) {
  const auto root =
      parseXml("\xef\xbb\xbf<?xml version=\"1.0\"?>\r\n<a>\t<b\tc = \"1\"/>\r\n</a >\n<!-- end -->", kXmlOrigin);
  ASSERT_TRUE(root.ok());
  ASSERT_EQ(root.value().children.size(), 1u);
  EXPECT_EQ(root.value().children[0].line, 2);
  EXPECT_EQ(*root.value().children[0].find("c"), "1");
}

TEST(Xml, TakesValuesAsTheyStand) {
  const auto root = parseXml("<a b=\"&quot;x&amp; <>\" c='a\nb'/>", kXmlOrigin);
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(*root.value().find("b"), "&quot;x&amp; <>");
  EXPECT_EQ(*root.value().find("c"), "a b");
}

struct BrokenText {
  std::string text;
  const char* message;
};

class BrokenXml : public testing::TestWithParam<BrokenText> {};

TEST_P(BrokenXml, IsRefusedWithLineAndReason) {
  test::expectLog(GetParam().message);
  const auto root = parseXml(GetParam().text, kXmlOrigin, {.bytes = 1000, .elements = 10, .depth = 4});
  EXPECT_EQ(root.status().code(), ncclInvalidUsage);
}

INSTANTIATE_TEST_SUITE_P(
    All, BrokenXml,
    testing::Values(
        BrokenText{"", "a.xml, line 1: there is no element"},
        BrokenText{"\n<!-- -->\n", "a.xml, line 3: there is no element"},
        BrokenText{"<a>\n<b>", "a.xml, line 2: the file ends inside <b> of line 2: is it cut off?"},
        BrokenText{"<a>\n<b c=\"1", "a.xml, line 2: <b> without its end '>'"},
        BrokenText{"<a>\n<b c=1>", "a.xml, line 2: the file ends inside <b> of line 2"},
        BrokenText{"<a>\n<b c=1/></a>", "a.xml, line 2: an attribute is not written as name=\"value\""},
        BrokenText{"<a>\n<b c/></a>", "a.xml, line 2: an attribute is not written as name=\"value\""},
        BrokenText{"<a>\n<b c=\"1\"d=\"2\"/></a>", "a.xml, line 2: an attribute is not written as"},
        BrokenText{"<a>\n<b c=\"1\" c=\"2\"/></a>", "a.xml, line 2, <b>: the attribute 'c' stands there twice"},
        BrokenText{"<a>\n<b>\n</a>", "a.xml, line 3: </a> where <b> of line 2 is to be closed"},
        BrokenText{"<a/>\n</a>", "a.xml, line 2: </a> closes nothing"},
        BrokenText{"<a/>\n<b/>", "a.xml, line 2: <b> is a second root element"},
        BrokenText{"<a>\n\ntext</a>", "a.xml, line 3: text between elements"},
        BrokenText{"<a/>\ntext", "a.xml, line 2: text outside of the root element"},
        BrokenText{"PK stuff", "a.xml, line 1: text outside of the root element"},
        BrokenText{"<a>\n<!-- </a>", "a.xml, line 2: a comment without its end '-->'"},
        BrokenText{"<?xml", "a.xml, line 1: a processing instruction without its end '?>'"},
        BrokenText{"<!DOCTYPE a [<!ENTITY b \"c\">]>\n<a/>", "a.xml, line 1: a declaration or CDATA section"},
        BrokenText{"<a>\n<![CDATA[x]]></a>", "a.xml, line 2: a declaration or CDATA section"},
        BrokenText{std::string("<a>\n\0</a>", 9), "a.xml, line 2: a character 0x00: this is no text"},
        BrokenText{"<a>\n<></></a>", "a.xml, line 2: '<' without the name of an element"},
        BrokenText{"<a>\n<1b/></a>", "a.xml, line 2: a tag is not well formed"},
        BrokenText{"<a>\n<b/ ></b></a>", "a.xml, line 2: a tag is not well formed"},
        BrokenText{"<a>\n</a", "a.xml, line 2: an end tag without its end '>'"},
        BrokenText{"<a><a><a><a>\n<a/></a></a></a></a>", "a.xml, line 2: elements more than 4 deep in each other"},
        BrokenText{"<a><b/><b/><b/><b/><b/><b/><b/><b/><b/>\n<b/></a>", "a.xml, line 2: more than 10 elements"},
        BrokenText{std::string(1001, ' '), "a.xml: more than 1000 bytes, which no machine needs"},
        BrokenText{std::string("<").append(90, 'x') + ">", "xxx...> of line 1: is it cut off?"}));

TEST(Xml, RefusesMoreAttributesThanAnyElementHas) {
  std::string text = "\n<a";
  for (int i = 0; i < 64; ++i) text += " b" + std::to_string(i) + "='>'";
  EXPECT_TRUE(parseXml(text + "/>", kXmlOrigin).ok());
  test::expectLog("a.xml, line 2: <a> has more than 64 attributes");
  EXPECT_FALSE(parseXml(text + " b=''/>", kXmlOrigin).ok());
}

TEST(Xml, WritesWhatItReads) {
  const std::string text =
      "<system version=\"1\">\n"
      "  <cpu numaid=\"0\" arch=\"x86_64\">\n"
      "    <nic>\n"
      "      <net name='\"quoted\"'/>\n"
      "    </nic>\n"
      "  </cpu>\n"
      "</system>\n";
  const auto root = parseXml(text, kXmlOrigin);
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(writeXml(root.value()), text);
}

TEST(Xml, WritesNoValueThatCouldNotBeReadAgain) {
  XmlElement element{.name = "a"};
  element.set("b", "1");
  element.set("b", "'\"\n");
  const auto again = parseXml(writeXml(element), kXmlOrigin);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again.value().find("b"), "\"\" ");
}

TEST(XmlFile, IsReadAndNamedInMessages) {
  const std::string path = testing::TempDir() + "xml_test_" + std::to_string(getpid()) + ".xml";
  std::ofstream(path) << "<a>\n";
  test::expectLog(path + ", line 2: the file ends inside <a>");
  EXPECT_EQ(readXmlFile(path).status().code(), ncclInvalidUsage);
  std::ofstream(path) << "<a/>\n";
  EXPECT_TRUE(readXmlFile(path).ok());
  std::remove(path.c_str());
  test::expectLog("cannot read " + path + ": it cannot be opened: No such file");
  EXPECT_EQ(readXmlFile(path).status().code(), ncclSystemError);
  test::expectLog("cannot read / (A_SETTING): it is a directory; name a regular file");
  EXPECT_EQ(readXmlFile("/", {}, "A_SETTING").status().code(), ncclInvalidUsage);
}

TEST(XmlFile, ReplacesWhatWasThere) {
  const std::string path = testing::TempDir() + "xml_test_written_" + std::to_string(getpid()) + ".xml";
  std::ofstream(path) << std::string(1000, 'x');
  XmlElement root{.name = "a"};
  root.set("b", "1");
  ASSERT_TRUE(writeXmlFile(path, root).ok());
  const auto again = readXmlFile(path);
  std::remove(path.c_str());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(writeXml(again.value()), "<a b=\"1\"/>\n");
}

TEST(XmlFile, SaysWhyItCannotBeWritten) {
  test::expectLog("cannot write /nowhere/a.xml: No such file or directory");
  EXPECT_EQ(writeXmlFile("/nowhere/a.xml", {.name = "a"}).code(), ncclSystemError);
  if (access("/dev/full", W_OK) != 0) return;
  test::expectLog("cannot write /dev/full: No space left on device");
  EXPECT_EQ(writeXmlFile("/dev/full", {.name = "a"}).code(), ncclSystemError);
}

TEST(XmlFile, OfNoEndIsRefused) {
  test::expectLog("cannot read /dev/zero: it is a device");
  EXPECT_EQ(readXmlFile("/dev/zero", {.bytes = 1 << 20}).status().code(), ncclInvalidUsage);
  test::expectLog("cannot read /proc/self/status: it has more than 10 bytes");
  EXPECT_EQ(readXmlFile("/proc/self/status", {.bytes = 10}).status().code(), ncclInvalidUsage);
}

TEST(XmlFile, ThatIsAFifoIsNotWaitedFor) {
  const std::string path = testing::TempDir() + "xml_test_fifo_" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  test::expectLog("cannot read " + path + ": it is a FIFO");
  EXPECT_EQ(readXmlFile(path).status().code(), ncclInvalidUsage);
  test::expectLog("cannot write " + path +
                  " (A_SETTING): No such device or address (6): it is a FIFO that nobody reads");
  EXPECT_EQ(writeXmlFile(path, {.name = "a"}, "A_SETTING").code(), ncclSystemError);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tutti::topo
