#include "comm/state/registrations.h"

#include <gtest/gtest.h>

#include <memory>

#include "transport/common/registered_memory.h"

namespace tutti::comm {
namespace {

const void* at(std::uintptr_t address) {
  return reinterpret_cast<const void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

TEST(Registrations, WhatLiesInARangeGetsItsHandle) {
  Registrations known;
  void* const whole = known.add(at(0x10000), 0x4000);
  EXPECT_NE(whole, nullptr);
  EXPECT_EQ(known.add(at(0x10000), 0x4000), whole);
  EXPECT_EQ(known.add(at(0x11000), 16), whole);
  EXPECT_EQ(known.size(), 1U);
}

TEST(Registrations, RangesAreWholePages) {
  Registrations known;
  void* const page = known.add(at(0x10008), 1);
  EXPECT_EQ(known.add(at(0x10000), Registrations::kPage), page);
  EXPECT_NE(known.add(at(0x10ff8), 16), page) << "it reaches into the next one";
}

TEST(Registrations, WhatOverlapsIsARangeOfItsOwn) {
  Registrations known;
  void* const first = known.add(at(0x10000), 0x2000);
  void* const second = known.add(at(0x11000), 0x2000);
  EXPECT_NE(first, second);
  EXPECT_EQ(known.size(), 2U);
}

TEST(Registrations, EachIsTakenBackOnItsOwn) {
  Registrations known;
  void* const handle = known.add(at(0x10000), 0x2000);
  known.add(at(0x10000), 0x1000);
  EXPECT_TRUE(known.remove(handle));
  EXPECT_EQ(known.size(), 1U);
  EXPECT_TRUE(known.remove(handle));
  EXPECT_EQ(known.size(), 0U);
  EXPECT_FALSE(known.remove(handle)) << "it was taken back as often as it was given";
}

TEST(Registrations, AHandleBelongsToOneCommunicator) {
  Registrations one;
  Registrations other;
  void* const handle = one.add(at(0x10000), 0x2000);
  EXPECT_NE(other.add(at(0x10000), 0x2000), handle);
  EXPECT_FALSE(other.remove(handle));
  EXPECT_TRUE(one.remove(handle));
}

TEST(Registrations, TransportsSeeARangeUntilItsLastHandleIsTakenBack) {
  Registrations known;
  void* const handle = known.add(at(0x10000), 0x2000);
  known.add(at(0x11000), 16);
  EXPECT_TRUE(known.cover(0x10000, 0x2000, 0));
  EXPECT_TRUE(known.remove(handle));
  EXPECT_TRUE(known.cover(0x10000, 0x2000, 0));
  EXPECT_TRUE(known.remove(handle));
  EXPECT_FALSE(known.cover(0x10000, 16, 0));
}

TEST(Registrations, WhatIsLeftAtTheEndTransportsSeeNoMore) {
  std::shared_ptr<transport::RegisteredMemory> seen;
  {
    Registrations known;
    known.add(at(0x10000), 0x2000);
    seen = known.memory();
  }
  EXPECT_FALSE(seen->covers(0x10000, 16));
}

TEST(Registrations, GraphsHaveRangesAsLongAsTheyLive) {
  std::shared_ptr<transport::RegisteredMemory> seen;
  std::shared_ptr<const void> graph;
  {
    Registrations known;
    seen = known.memory();
    graph = known.holdForGraph(7);
    EXPECT_TRUE(known.addForGraph(0x10000, 0x2000, 7));
    EXPECT_FALSE(known.cover(0x10000, 16, 0));
    EXPECT_TRUE(known.cover(0x10000, 16, 7));
  }
  EXPECT_TRUE(seen->covers(0x10000, 16, 7)) << "graphs may outlive the communicator";
  graph.reset();
  EXPECT_FALSE(seen->covers(0x10000, 16, 7));
}

}  // namespace
}  // namespace tutti::comm
