#include "bootstrap/comm_key.h"

#include <gtest/gtest.h>

#include "bootstrap/unique_id.h"
#include "support/log_capture.h"

namespace tutti::bootstrap {
namespace {

TEST(CommKey, OneThatCanBeGuessedIsRefusedWithARemedy) {
  test::allowLog("TUTTI_COMM_KEY has");
  for (const char* weak : {"secret", "fifteen letters", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", "abababcdcdcdefefefgg"}) {
    EXPECT_EQ(checkCommKey(weak).code(), ncclInvalidUsage) << weak;
  }
  EXPECT_NE(test::capturedText().find("head -c 24 /dev/urandom | base64"), std::string::npos);
  for (const char* allowed : {"", "abcdefghabcdefgh", "q1Vx0s9+KjH3/2bnRwGmYtLz0pOeXdUi"}) {
    EXPECT_TRUE(checkCommKey(allowed).ok()) << allowed;
  }
}

TEST(CommKey, CountsOnlyForIdsWithoutASecret) {
  ASSERT_TRUE(initCrypto().ok());
  UniqueId id;
  fillRandom(id.secret);
  EXPECT_EQ(rootKey(id, "abcdefghabcdefgh"), rootKey(id, ""));
  id.fixedAddress = true;
  EXPECT_NE(rootKey(id, "abcdefghabcdefgh"), rootKey(id, ""));
  EXPECT_NE(rootKey(id, "abcdefghabcdefgh"), rootKey(id, "abcdefghabcdefgi"));
}

}  // namespace
}  // namespace tutti::bootstrap
