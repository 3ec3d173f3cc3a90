#include "base/socket/errors.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string_view>

namespace tutti {
namespace {

constexpr int kMostErrno = 133;

TEST(SocketErrors, NothingThatIsThisHostsOwnTroubleComesUpByItself) {
  for (int error = 0; error <= kMostErrno; ++error) EXPECT_FALSE(isLocalTrouble(error) && mayComeUpYet(error)) << error;
}

TEST(SocketErrors, APeerThatDoesNotListenYetAndASystemWithoutRoomAreTriedAgain) {
  for (const int error : {ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ECONNRESET, EAGAIN}) EXPECT_TRUE(mayComeUpYet(error));
  for (const int error : {0, EPERM, EINVAL, EMFILE}) EXPECT_FALSE(mayComeUpYet(error)) << error;
}

TEST(SocketErrors, RemediesFollowTheSystemsOwnWords) {
  for (int error = 0; error <= kMostErrno; ++error) {
    const std::string_view remedy = socketRemedy(error);
    EXPECT_TRUE(remedy.empty() || remedy.starts_with(". ")) << error;
  }
  EXPECT_FALSE(std::string_view(socketRemedy(EMFILE)).empty());
}

}  // namespace
}  // namespace tutti
