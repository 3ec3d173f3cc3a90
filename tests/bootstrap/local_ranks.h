// Ranks of a bootstrap as threads on the loopback interface.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "bootstrap/join_options.h"
#include "support/log_capture.h"
#include "support/thread_ranks.h"

namespace tutti::test {

inline bootstrap::BootstrapSettings localSettings(milliseconds timeout = milliseconds(20'000)) {
  bootstrap::BootstrapSettings settings;
  settings.interfaceNames = "lo";
  settings.timeout = timeout;
  return settings;
}

inline std::vector<ncclUniqueId> makeIds(int count, const bootstrap::BootstrapSettings& settings) {
  std::vector<ncclUniqueId> ids;
  for (int i = 0; i < count; ++i) ids.push_back(bootstrap::createUniqueId(settings).value());
  return ids;
}

inline bootstrap::JoinOptions joinOptions(const std::vector<ncclUniqueId>& ids, int rank, int nRanks,
                                          const bootstrap::BootstrapSettings& settings) {
  bootstrap::JoinOptions options;
  options.ids = ids;
  options.rank = rank;
  options.nRanks = nRanks;
  options.settings = settings;
  return options;
}

/// Joins `nRanks` threads through `nRoots` ids and runs `body` on each.
inline void runJoined(int nRanks, int nRoots, const std::function<void(bootstrap::Bootstrap&)>& body) {
  const bootstrap::BootstrapSettings settings = localSettings();
  const auto ids = makeIds(nRoots, settings);
  runRanks(nRanks, [&](int rank) {
    auto joined = bootstrap::Bootstrap::join(joinOptions(ids, rank, nRanks, settings));
    ASSERT_TRUE(joined.ok());
    body(*joined.value());
  });
}

}  // namespace tutti::test
