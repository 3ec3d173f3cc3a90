#include "bootstrap/unique_id.h"

#include <gtest/gtest.h>

#include "support/log_capture.h"

namespace tutti::bootstrap {
namespace {

UniqueId sample() {
  UniqueId id;
  id.root = Address::loopback(AF_INET6, 4711);
  fillRandom(id.secret);
  return id;
}

TEST(UniqueIdCodec, SurvivesTheTrip) {
  ASSERT_TRUE(initCrypto().ok());
  const UniqueId id = sample();
  const auto back = decodeUniqueId(encodeUniqueId(id));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value().root, id.root);
  EXPECT_EQ(back.value().secret, id.secret);
  EXPECT_FALSE(back.value().fixedAddress);
}

TEST(UniqueIdCodec, AllZeroIsRefused) {
  test::expectLog("was not made by this library");
  EXPECT_EQ(decodeUniqueId(ncclUniqueId{}).status().code(), ncclInvalidArgument);
}

TEST(UniqueIdCodec, CutIdIsRefused) {
  test::expectLog("is damaged");
  ncclUniqueId bytes = encodeUniqueId(sample());
  for (int i = 64; i < 128; ++i) bytes.internal[i] = 0;
  EXPECT_EQ(decodeUniqueId(bytes).status().code(), ncclInvalidArgument);
}

TEST(UniqueIdCodec, OtherProtocolVersionIsRefused) {
  test::expectLog("speaks bootstrap protocol");
  ncclUniqueId bytes = encodeUniqueId(sample());
  bytes.internal[8] = 77;
  EXPECT_EQ(decodeUniqueId(bytes).status().code(), ncclInvalidUsage);
}

}  // namespace
}  // namespace tutti::bootstrap
