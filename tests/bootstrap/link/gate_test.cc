#include "bootstrap/link/gate.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <array>

#include "base/fd.h"
#include "base/socket/socket.h"
#include "link/knocking.h"

namespace tutti::bootstrap {
namespace {

class GateTest : public testing::Test {
 protected:
  bool opens(Gate& gate) {
    return test::eventually([&] {
      gate.tend();
      return gate.oneIn() == 1 && gate.next().isNever();
    });
  }

  Listener listener_ = Listener::listen(Address::loopback(AF_INET)).value();
  Sieges sieges_;
  std::array<KnockWord, 1> knock_{};
};

TEST_F(GateTest, ManyStrangersNarrowItAndItOpensWhenTheyAreGone) {
  Gate gate(listener_.fd(), sieges_);
  gate.sawStrangers(200, knock_);
  EXPECT_GT(gate.oneIn(), 1U);
  EXPECT_FALSE(gate.next().isNever());
  Socket socket;
  EXPECT_EQ(Socket::tryConnect(listener_.address(), {Deadline::in(milliseconds(1)), nullptr, -1}, &socket).done(),
            socket.valid());
  EXPECT_TRUE(opens(gate));
  EXPECT_TRUE(gate.everNarrow());
  EXPECT_TRUE(test::connectTo(listener_.address()).valid());
}

TEST_F(GateTest, TheMoreComeTheNarrowerItIs) {
  Gate few(listener_.fd(), sieges_);
  few.sawStrangers(50, knock_);
  Sieges others;
  Gate many(listener_.fd(), others);
  many.sawStrangers(500, knock_);
  EXPECT_GT(many.oneIn(), few.oneIn());
  for (int i = 0; i < 100; ++i) many.sawStrangers(500, knock_);
  EXPECT_LE(many.oneIn(), 1U << 16) << "somebody always has a chance";
}

TEST_F(GateTest, FewStrangersChangeNothing) {
  Gate gate(listener_.fd(), sieges_);
  for (int i = 0; i < 6; ++i) gate.sawStrangers(5, knock_);
  EXPECT_EQ(gate.oneIn(), 1U);
  EXPECT_FALSE(gate.everNarrow());
  EXPECT_TRUE(opens(gate)) << "and nobody is woken for long";
}

TEST_F(GateTest, AfterASiegeTheNextListenerNeedsFewerToBeNarrowed) {
  Gate first(listener_.fd(), sieges_);
  first.sawStrangers(200, knock_);
  const Listener other = Listener::listen(Address::loopback(AF_INET)).value();
  Gate next(other.fd(), sieges_);
  next.sawStrangers(1, knock_);
  EXPECT_EQ(next.oneIn(), 1U);
  next.sawStrangers(5, knock_);
  EXPECT_EQ(next.oneIn(), first.oneIn());
}

TEST_F(GateTest, WhereTheSystemCannotFilterItStaysOpen) {
  const Fd noSocket(::eventfd(0, EFD_CLOEXEC));
  Gate gate(noSocket.get(), sieges_);
  for (int i = 0; i < 3; ++i) gate.sawStrangers(500, knock_);
  EXPECT_EQ(gate.oneIn(), 1U);
  EXPECT_TRUE(gate.next().isNever());
}

}  // namespace
}  // namespace tutti::bootstrap
