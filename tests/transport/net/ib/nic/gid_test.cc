#include "transport/net/ib/nic/gid.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <vector>

namespace tutti::net::ib {
namespace {

Gid gidOf(const char* text) {
  Gid gid{};
  EXPECT_EQ(::inet_pton(AF_INET6, text, gid.data()), 1) << text;
  return gid;
}

GidEntry entry(int index, const char* text, int version) {
  return {.index = index, .gid = gidOf(text), .roceVersion = version};
}

/// As most hosts have it: link-local ones first, then the interface's address, each of both versions.
std::vector<GidEntry> ordinary() {
  return {entry(0, "fe80::1", 1), entry(1, "fe80::1", 2), entry(2, "::ffff:10.0.0.1", 1),
          entry(3, "::ffff:10.0.0.1", 2)};
}

GidWish within(const char* range) {
  GidWish wish;
  wish.range = GidRange::parse(range);
  return wish;
}

TEST(GidChoice, TakesTheIpv4AddressOfVersionTwo) {
  const GidChoice choice = chooseGid(ordinary(), {});
  EXPECT_EQ(choice.entry.index, 3);
  EXPECT_EQ(choice.doubt, "");
}

TEST(GidChoice, TakesTheVersionThatIsAskedFor) {
  GidWish wish;
  wish.roceVersion = 1;
  EXPECT_EQ(chooseGid(ordinary(), wish).entry.index, 2);
}

TEST(GidChoice, TakesIpv6WhereThereIsNothingElseWithoutADoubt) {
  const std::vector<GidEntry> table{entry(0, "fe80::1", 1), entry(1, "fe80::1", 2), entry(2, "fd00::1", 1),
                                    entry(3, "fd00::1", 2)};
  const GidChoice choice = chooseGid(table, {});
  EXPECT_EQ(choice.entry.index, 3);
  EXPECT_EQ(choice.doubt, "");
}

TEST(GidChoice, TakesTheFamilyThatIsAskedFor) {
  std::vector<GidEntry> table = ordinary();
  table.push_back(entry(4, "fd00::1", 1));
  table.push_back(entry(5, "fd00::1", 2));
  GidWish wish;
  EXPECT_EQ(chooseGid(table, wish).entry.index, 3);
  wish.family = GidFamily::Ipv6;
  EXPECT_EQ(chooseGid(table, wish).entry.index, 5);
}

TEST(GidChoice, DoubtsATableOfLinkLocalOnes) {
  const std::vector<GidEntry> table{entry(0, "fe80::1", 1), entry(1, "fe80::1", 2)};
  const GidChoice choice = chooseGid(table, {});
  EXPECT_EQ(choice.entry.index, 1);
  EXPECT_NE(choice.doubt.find("link-local"), std::string::npos);
}

TEST(GidChoice, PrefersTheFirstOfSeveralVlans) {
  std::vector<GidEntry> table = ordinary();
  table.push_back(entry(4, "::ffff:192.168.7.1", 1));
  table.push_back(entry(5, "::ffff:192.168.7.1", 2));
  EXPECT_EQ(chooseGid(table, {}).entry.index, 3);
  EXPECT_EQ(chooseGid(table, within("192.168.0.0/16")).entry.index, 5);
}

TEST(GidChoice, SkipsSlotsThatAreEmpty) {
  const std::vector<GidEntry> table{entry(4, "::ffff:10.0.0.1", 1), entry(9, "::ffff:10.0.0.1", 2)};
  EXPECT_EQ(chooseGid(table, {}).entry.index, 9);
  std::vector<GidEntry> zeros = table;
  zeros.insert(zeros.begin(), {.index = 0, .gid = {}, .roceVersion = 2});
  EXPECT_EQ(chooseGid(zeros, {}).entry.index, 9);
}

TEST(GidChoice, DoubtsAnEmptyTable) {
  const GidChoice choice = chooseGid({}, {});
  EXPECT_EQ(choice.entry.index, 0);
  EXPECT_FALSE(choice.doubt.empty());
}

TEST(GidChoice, TakesTheEntryThatIsNamedWhateverItIs) {
  GidWish wish;
  wish.index = 0;
  EXPECT_EQ(chooseGid(ordinary(), wish).entry.index, 0);
  EXPECT_EQ(chooseGid(ordinary(), wish).doubt, "");
  wish.index = 7;
  EXPECT_EQ(chooseGid(ordinary(), wish).entry.index, 7);
  EXPECT_NE(chooseGid(ordinary(), wish).doubt.find("NCCL_IB_GID_INDEX"), std::string::npos);
}

TEST(GidChoice, PrefersTheOtherFamilyToTheOtherVersion) {
  const std::vector<GidEntry> table{entry(0, "::ffff:10.0.0.1", 1), entry(1, "fd00::1", 2)};
  EXPECT_EQ(chooseGid(table, {}).entry.index, 1);
}

TEST(GidChoice, PrefersTheRangeToAllElseAndSaysWhenNothingIsInIt) {
  std::vector<GidEntry> table = ordinary();
  table.push_back(entry(4, "::ffff:10.9.0.1", 1));
  EXPECT_EQ(chooseGid(table, within("10.9.0.0/16")).entry.index, 4);
  EXPECT_NE(chooseGid(table, within("10.9.0.0/16")).doubt.find("NCCL_IB_ROCE_VERSION_NUM"), std::string::npos);
  EXPECT_EQ(chooseGid(table, within("10.8.0.0/16")).entry.index, 3);
  EXPECT_NE(chooseGid(table, within("10.8.0.0/16")).doubt.find("NCCL_IB_ADDR_RANGE"), std::string::npos);
}

TEST(GidRange, KnowsWhatIsInIt) {
  const GidRange four = GidRange::parse("10.1.128.0/17");
  EXPECT_TRUE(four.contains(gidOf("::ffff:10.1.128.0")));
  EXPECT_TRUE(four.contains(gidOf("::ffff:10.1.255.255")));
  EXPECT_FALSE(four.contains(gidOf("::ffff:10.1.127.255")));
  EXPECT_FALSE(four.contains(gidOf("fd00::1")));
  const GidRange six = GidRange::parse("fd00::/8");
  EXPECT_TRUE(six.contains(gidOf("fdff::1")));
  EXPECT_FALSE(six.contains(gidOf("fe00::1")));
  EXPECT_FALSE(six.contains(gidOf("::ffff:10.1.128.0")));
  EXPECT_TRUE(GidRange::parse("10.0.0.1/32").contains(gidOf("::ffff:10.0.0.1")));
  EXPECT_FALSE(GidRange::parse("10.0.0.1/32").contains(gidOf("::ffff:10.0.0.2")));
}

TEST(GidRange, IsEverythingWhereTheTextIsNone) {
  for (const char* text : {"", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x", "fd00::/129",
                           "somewhere/8", "/", "10.0.0/8"}) {
    EXPECT_TRUE(GidRange::parse(text).contains(gidOf("fe80::1"))) << text;
    EXPECT_TRUE(GidRange::parse(text).contains(gidOf("::ffff:1.2.3.4"))) << text;
  }
}

TEST(Gid, TellsFamiliesAndLinkLocalOnesApart) {
  EXPECT_EQ(familyOf(gidOf("::ffff:10.0.0.1")), GidFamily::Ipv4);
  EXPECT_EQ(familyOf(gidOf("fd00::1")), GidFamily::Ipv6);
  EXPECT_TRUE(isLinkLocal(gidOf("fe80::1:2:3:4")));
  EXPECT_FALSE(isLinkLocal(gidOf("fe80:0:0:1::1"))) << "of InfiniBand, in another subnet";
  EXPECT_EQ(gidText(gidOf("::ffff:10.0.0.1")), "::ffff:10.0.0.1");
}

TEST(GidChoice, SaysWhatEachEntryHasAgainstIt) {
  const GidWish wish{.range = GidRange::parse("10.0.0.0/8")};
  const auto entry = [](int last, bool linkLocal, int version) {
    GidEntry one{.index = 1, .roceVersion = version};
    one.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, static_cast<std::uint8_t>(last)};
    if (linkLocal) one.gid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, static_cast<std::uint8_t>(last)};
    return one;
  };
  EXPECT_EQ(flawsOf(entry(1, false, 2), wish), GidFlaws());
  EXPECT_EQ(flawsOf(entry(1, false, 1), wish), (GidFlaws{.otherVersion = true}));
  EXPECT_EQ(flawsOf(entry(1, true, 2), wish), (GidFlaws{.linkLocal = true, .outside = true, .otherFamily = true}));
  EXPECT_TRUE(flawsOf({}, wish).unset);
}

TEST(GidChoice, SaysWhyItWasMade) {
  EXPECT_EQ(chooseGid(ordinary(), {}).reason, GidReason::Best);
  GidWish named;
  named.index = 0;
  EXPECT_EQ(chooseGid(ordinary(), named).reason, GidReason::Named);
  named.index = 200;
  EXPECT_EQ(chooseGid(ordinary(), named).reason, GidReason::Named) << "asked for, though there is none";
  EXPECT_EQ(chooseGid({}, {}).reason, GidReason::Nothing);
}

}  // namespace
}  // namespace tutti::net::ib
