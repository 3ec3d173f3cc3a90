#include "base/threads/cpu_set.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

std::string listed(const std::optional<cpu_set_t>& set) {
  return set ? cpuListText(*set) : "refused";
}

TEST(CpuSet, ListsAreReadAndWritten) {
  EXPECT_EQ(listed(parseCpuList("0-3,8")), "0-3,8");
  EXPECT_EQ(listed(parseCpuList("8,1,0,2,3")), "0-3,8");
  EXPECT_EQ(listed(parseCpuList("1023")), "1023");
  for (const char* broken :
       {"", ",", "0,", ",0", "3-1", "a", "0-", "-1", "0x3", "1024", "0-1024", "0 1", "4294967296"}) {
    EXPECT_EQ(listed(parseCpuList(broken)), "refused") << broken;
  }
}

TEST(CpuSet, WordsAreReadMostSignificantFirst) {
  EXPECT_EQ(listed(parseCpuWords("f")), "0-3");
  EXPECT_EQ(listed(parseCpuWords("00000001,80000000,00000101")), "0,8,63-64");
  EXPECT_EQ(listed(parseCpuWords("00000000,00000000")), "");
  for (const char* broken : {"", ",", "f,", ",f", "f,,f", "g", "100000000", "0xf"}) {
    EXPECT_EQ(listed(parseCpuWords(broken)), "refused") << broken;
  }
  std::string long_ = "1";
  for (int i = 0; i < CPU_SETSIZE / 32 - 1; ++i) long_ += ",0";
  EXPECT_EQ(listed(parseCpuWords(long_)), "992");
  EXPECT_EQ(listed(parseCpuWords(long_ + ",0")), "refused") << "more than there are";
}

TEST(CpuSet, OwnProcessorsAreSome) {
  const auto own = ownProcessors();
  ASSERT_TRUE(own.has_value());
  EXPECT_GT(CPU_COUNT(&*own), 0);
  EXPECT_EQ(cpuListText(*own & *own), cpuListText(*own));
}

}  // namespace
}  // namespace tutti
