#include "comm/state/births.h"

#include <gtest/gtest.h>

#include <array>

namespace tutti::comm {
namespace {

using Tie = Births::Tie;

constexpr std::array kTies = {Tie::Health, Tie::Life, Tie::Growth};

/// Which births end when this happens to the parent.
bool ends(Tie tie, Tie reason) {
  return tie == reason || (tie == Tie::Health && reason == Tie::Life);
}

TEST(Births, EndWithWhatTheyAreTiedTo) {
  for (const Tie tie : kTies) {
    for (const Tie reason : kTies) {
      Births births;
      Abort child;
      const Births::Birth birth = births.begin(child, tie);
      births.stop(reason, Status(ncclRemoteError), "rank 3 died");
      EXPECT_EQ(child.raised(), ends(tie, reason)) << static_cast<int>(tie) << " at " << static_cast<int>(reason);
      EXPECT_EQ(child.text(), ends(tie, reason) ? "rank 3 died" : "");
    }
  }
}

TEST(Births, EndAtOnceWhereItHasHappenedBefore) {
  for (const Tie tie : kTies) {
    for (const Tie reason : kTies) {
      Births births;
      births.stop(reason, Status(ncclRemoteError), "rank 3 died");
      Abort child;
      const Births::Birth birth = births.begin(child, tie);
      EXPECT_EQ(child.raised(), ends(tie, reason)) << static_cast<int>(tie) << " after " << static_cast<int>(reason);
    }
  }
}

TEST(Births, AreLeftAloneOnceTheyAreOver) {
  Births births;
  Abort child;
  { const Births::Birth birth = births.begin(child, Tie::Growth); }
  births.stop(Tie::Growth, Status(ncclRemoteError), "rank 3 died");
  EXPECT_FALSE(child.raised());
}

TEST(Births, EndForTheFirstReason) {
  Births births;
  Abort child;
  const Births::Birth birth = births.begin(child, Tie::Growth);
  births.stop(Tie::Growth, Status(ncclRemoteError), "rank 3 died");
  births.stop(Tie::Growth, Status(ncclSystemError), "rank 4 died");
  EXPECT_EQ(child.text(), "rank 3 died");
  EXPECT_EQ(child.status().code(), ncclRemoteError);
}

}  // namespace
}  // namespace tutti::comm
