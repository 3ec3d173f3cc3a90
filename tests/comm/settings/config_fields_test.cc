#include "comm/settings/config_fields.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "comm/settings/config.h"
#include "support/log_capture.h"
#include "support/scoped_log.h"

namespace tutti::comm {
namespace {

std::size_t timesSaid(std::string_view text) {
  const std::string all = test::capturedText();
  std::size_t times = 0;
  for (std::size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++times;
  return times;
}

TEST(ConfigFields, EachHasItsOwnNameAndMember) {
  std::set<std::string_view> names;
  ncclConfig_t config = undefinedConfig();
  for (const ConfigField& field : configFields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_EQ(config.*field.member, NCCL_CONFIG_UNDEF_INT) << field.name;
    config.*field.member = 1;
  }
}

TEST(ConfigFields, WhatNothingHeedsSaysSoOnceWithItsReason) {
  const test::ScopedLog level("INFO");
  ncclConfig_t given = undefinedConfig();
  for (const ConfigField& field : configFields()) given.*field.member = 1;
  std::atomic<std::uint32_t> said{0};
  for (int i = 0; i < 3; ++i) sayWithoutEffect(given, said);
  for (const char* title : {"CGA cluster size", "CTA policy flags", "nvlsCTAs", "nvlinkCentricSched", "numRmaCtx",
                            "numRmaSig", "rmaEagerInit", "hostCftMode", "nvlsHostMode"}) {
    EXPECT_EQ(timesSaid(std::string("Comm config ") + title + " has no effect yet: "), 1U) << title;
  }
  EXPECT_EQ(timesSaid("has no effect yet"), 9U) << test::capturedText();
}

TEST(ConfigFields, WhatNobodySetsIsNotMentioned) {
  const test::ScopedLog level("INFO");
  std::atomic<std::uint32_t> said{0};
  sayWithoutEffect(undefinedConfig(), said);
  EXPECT_EQ(timesSaid("has no effect yet"), 0U);
}

}  // namespace
}  // namespace tutti::comm
