#include "comm/state/call_gate.h"

#include <gtest/gtest.h>

namespace tutti::comm {
namespace {

TEST(CallGate, KnowsWhetherSomebodyIsInside) {
  CallGate gate;
  EXPECT_TRUE(gate.awaitEmpty(Deadline::in(milliseconds(0))));
  {
    const CallGate::Pass pass(gate);
    EXPECT_FALSE(gate.awaitEmpty(Deadline::in(milliseconds(1))));
  }
  EXPECT_TRUE(gate.awaitEmpty(Deadline::in(milliseconds(0))));
}

TEST(CallGate, KnowsWhetherAnybodyElseIsInside) {
  CallGate gate;
  const CallGate::Pass own(gate);
  EXPECT_TRUE(gate.alone());
  {
    const CallGate::Pass other(gate);
    EXPECT_FALSE(gate.alone());
  }
  EXPECT_TRUE(gate.alone());
}

}  // namespace
}  // namespace tutti::comm
