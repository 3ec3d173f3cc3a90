#include "comm/state/revocation.h"

#include <gtest/gtest.h>

#include <array>

namespace tutti::comm {
namespace {

constexpr milliseconds kGrace{200};

TEST(Revocation, BeginsOnce) {
  Revocation revocation;
  EXPECT_FALSE(revocation.begun());
  EXPECT_TRUE(revocation.begin());
  EXPECT_FALSE(revocation.begin());
  EXPECT_EQ(revocation.result(), ncclInProgress);
  revocation.finish({});
  EXPECT_EQ(revocation.result(), ncclSuccess);
}

TEST(RevokedPeers, TakeTheirNoticeAndNothingElse) {
  RevokedPeers peers;
  const std::array<std::byte, 256> other{};
  EXPECT_FALSE(peers.hear(1, other));
  EXPECT_FALSE(peers.hear(1, std::span(other).first(RevokedPeers::notice().size())));
  EXPECT_FALSE(peers.contains(1));
  EXPECT_TRUE(peers.hear(1, RevokedPeers::notice()));
  EXPECT_TRUE(peers.contains(1));
  EXPECT_FALSE(peers.contains(0));
}

TEST(RevokedPeers, HinderOnlyWhoWaitsForLongEnough) {
  RevokedPeers peers;
  const SteadyClock::time_point start = SteadyClock::now();
  EXPECT_EQ(peers.hindering(start, true, kGrace), std::nullopt);
  EXPECT_EQ(peers.hindering(start + kGrace, true, kGrace), std::nullopt) << "nobody has revoked";
  peers.hear(3, RevokedPeers::notice());
  peers.hear(2, RevokedPeers::notice());
  EXPECT_EQ(peers.hindering(start + kGrace, true, kGrace), std::nullopt);
  EXPECT_EQ(peers.hindering(start + 2 * kGrace, false, kGrace), std::nullopt) << "what was under way has ended";
  EXPECT_EQ(peers.hindering(start + 3 * kGrace, true, kGrace), std::nullopt);
  EXPECT_EQ(peers.hindering(start + 4 * kGrace, true, kGrace), 3);
}

}  // namespace
}  // namespace tutti::comm
