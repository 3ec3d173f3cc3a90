#include "base/handle.h"

#include <gtest/gtest.h>

#include <new>
#include <utility>
#include <vector>

namespace tutti {
namespace {

std::vector<int> closed;

struct NumberTraits {
  using Type = int;
  static Type invalid() { return -1; }
  static void close(Type number) {
    closed.push_back(number);
    if (number >= 100) throw std::bad_alloc();
  }
};
using Number = Handle<NumberTraits>;

class HandleTest : public testing::Test {
 protected:
  void SetUp() override { closed.clear(); }
};

TEST_F(HandleTest, ClosesOnceWhatItHolds) {
  { const Number number(3); }
  EXPECT_EQ(closed, std::vector<int>{3});
  { const Number nothing; }
  EXPECT_EQ(closed.size(), 1U);
}

TEST_F(HandleTest, WhoIsMovedFromClosesNothing) {
  {
    Number first(3);
    const Number second(std::move(first));
    EXPECT_EQ(second.get(), 3);
  }
  EXPECT_EQ(closed, std::vector<int>{3});
}

TEST_F(HandleTest, AnAssignmentClosesWhatWasHeld) {
  Number number(3);
  number = Number(4);
  EXPECT_EQ(closed, std::vector<int>{3});
  EXPECT_EQ(number.release(), 4);
  EXPECT_FALSE(number.valid());
}

TEST_F(HandleTest, ACloseWithoutMemoryForItsMessageEndsNoProgram) {
  { const Number number(100); }
  Number other(101);
  other.reset();
  EXPECT_EQ(closed, (std::vector<int>{100, 101}));
}

}  // namespace
}  // namespace tutti
