// Runs N ranks as threads and collects what goes wrong in them.
#pragma once

#include <chrono>
#include <functional>

namespace tutti::test {

/// Runs `body(rank)` on `ranks` threads and waits for all. GoogleTest assertions inside work as usual (EXPECT_*), a
/// Status that is not ok is best checked with EXPECT_TRUE(status.ok()). An exception in a rank fails the test. Ranks
/// that have not returned after `limit` fail the test by name, and the process ends: their threads cannot be stopped.
void runRanks(int ranks, const std::function<void(int)>& body, std::chrono::seconds limit = std::chrono::seconds(60));

}  // namespace tutti::test
