// A configuration none of whose fields is a default, and how configurations are compared.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "comm/settings/config.h"
#include "comm/settings/config_fields.h"

namespace tutti::test {

/// A value of `field` that is allowed and not its default. All fields may have theirs at the same time.
inline int otherThanDefault(const comm::ConfigField& field) {
  constexpr std::array kCandidates{2, 3, 1, 0};
  return *std::find_if(kCandidates.begin(), kCandidates.end(), [&](int value) {
    return value != field.fallback && value >= field.lowest && value <= field.highest;
  });
}

/// The texts are literals.
inline ncclConfig_t otherConfig() {
  ncclConfig_t config = comm::undefinedConfig();
  for (const comm::ConfigField& field : comm::configFields()) config.*field.member = otherThanDefault(field);
  config.netName = "Socket";
  config.commName = "training";
  return config;
}

inline void expectSame(const comm::Config& config, const comm::Config& shall) {
  for (const comm::ConfigField& field : comm::configFields()) {
    EXPECT_EQ(config.values.*field.member, shall.values.*field.member) << field.name;
  }
  EXPECT_EQ(config.netName, shall.netName);
  EXPECT_EQ(config.commName, shall.commName);
}

}  // namespace tutti::test
