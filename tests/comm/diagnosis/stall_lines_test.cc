#include "comm/diagnosis/stall_lines.h"

#include <gtest/gtest.h>

namespace tutti::comm {
namespace {

using device::Protocol;

EndReading end(device::Direction direction, device::Protocol protocol, std::uint64_t produced, std::uint64_t consumed) {
  EndReading reading;
  reading.channel = 2;
  reading.peer = 3;
  reading.direction = direction;
  reading.protocol = protocol;
  reading.transport = "P2P/IPC";
  reading.produced = produced;
  reading.consumed = consumed;
  return reading;
}

std::string lineOf(const EndReading& reading) {
  const auto wait = waitOf(reading);
  return wait ? describeEnd(reading, "rank 3 (host b, device 1)", *wait) : "";
}

TEST(StallLines, ASenderWithoutRoomWaitsForItsPeer) {
  const EndReading full = end(device::Direction::Send, device::Protocol::Simple, 17, 9);
  EXPECT_TRUE(waitOf(full)->waits);
  EXPECT_EQ(lineOf(full),
            "channel 2, to rank 3 (host b, device 1) by P2P/IPC, Simple, 17 slots sent, 9 taken: waits for "
            "rank 3 to take slots 9..16");
}

TEST(StallLines, ASenderWithRoomTellsWhatIsOpenAndDoesNotWait) {
  const EndReading open = end(device::Direction::Send, device::Protocol::Simple, 10, 9);
  EXPECT_FALSE(waitOf(open)->waits);
  EXPECT_NE(lineOf(open).find("rank 3 has not taken slot 9 yet"), std::string::npos);
  EXPECT_FALSE(waitOf(end(device::Direction::Send, device::Protocol::Simple, 9, 9)));
}

TEST(StallLines, AReceiverOfAnEmptySlotWaitsForItsPeer) {
  const EndReading empty = end(device::Direction::Recv, device::Protocol::Simple, 18, 18);
  EXPECT_TRUE(waitOf(empty)->waits);
  EXPECT_EQ(lineOf(empty),
            "channel 2, from rank 3 (host b, device 1) by P2P/IPC, Simple, 18 slots received: waits for "
            "rank 3 to fill slot 18");
}

TEST(StallLines, WhatHasComeAndIsNotTakenIsNotThePeersFault) {
  const EndReading there = end(device::Direction::Recv, device::Protocol::Simple, 20, 18);
  EXPECT_FALSE(waitOf(there)->waits);
  EXPECT_NE(lineOf(there).find("slots 18..19 came and have not been taken yet"), std::string::npos);
}

TEST(StallLines, LinesWithFlagsAreCountedByTheReceiverAlone) {
  EXPECT_TRUE(waitOf(end(device::Direction::Recv, device::Protocol::LL, 0, 5))->waits);
  EXPECT_NE(lineOf(end(device::Direction::Recv, device::Protocol::LL128, 0, 1)).find("LL128, 1 slot received"),
            std::string::npos);
  EXPECT_FALSE(waitOf(end(device::Direction::Send, device::Protocol::LL, 0, 5)));
}

TEST(StallLines, TheHostThreadInBetweenSpeaksForItself) {
  EndReading proxied = end(device::Direction::Recv, device::Protocol::Simple, 4, 4);
  proxied.task = "step 4, waits for the network to deliver it";
  EXPECT_TRUE(waitOf(proxied)->waits);
  EXPECT_NE(lineOf(proxied).find("the host thread: step 4, waits for the network"), std::string::npos);
  proxied.direction = device::Direction::Send;
  EXPECT_FALSE(waitOf(proxied)->waits);
}

TEST(StallLines, OfAPeerThatHasLeftNothingIsCounted) {
  EndReading end;
  end.channel = 1;
  end.peer = 3;
  end.direction = device::Direction::Recv;
  end.transport = "P2P/IPC";
  end.left = true;
  const auto wait = waitOf(end);
  ASSERT_TRUE(wait.has_value());
  EXPECT_TRUE(wait->waits);
  EXPECT_EQ(describeEnd(end, "rank 3 (host b)", *wait),
            "channel 1, from rank 3 (host b) by P2P/IPC, Simple: rank 3 has left the communicator");
  end.direction = device::Direction::Send;
  EXPECT_FALSE(waitOf(end)->waits) << "it may have taken all";
}

}  // namespace
}  // namespace tutti::comm
