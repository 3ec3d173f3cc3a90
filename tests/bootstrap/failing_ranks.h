// Joins that cannot succeed.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "local_ranks.h"

namespace tutti::test {

/// A time to wait in for those who do not come.
inline constexpr milliseconds kShort{700};

/// Joins ranks that cannot succeed; each must get `code`, and the last error must hold `part`.
inline void expectAllFail(const std::vector<bootstrap::JoinOptions>& ranks, ncclResult_t code,
                          const std::string& part) {
  allowLog(part);
  const auto start = SteadyClock::now();
  runRanks(static_cast<int>(ranks.size()), [&](int i) {
    EXPECT_EQ(bootstrap::Bootstrap::join(ranks[static_cast<std::size_t>(i)]).status().code(), code) << "joiner " << i;
  });
  EXPECT_NE(std::string(lastErrorText()).find(part), std::string::npos) << lastErrorText();
  EXPECT_LT(secondsSince(start), 10.0);
}

}  // namespace tutti::test
