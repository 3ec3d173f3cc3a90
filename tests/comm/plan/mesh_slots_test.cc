// What connections for messages over a network take when there are many.
#include "comm/plan/mesh_slots.h"

#include <gtest/gtest.h>

#include "comm/plan/message_channels.h"
#include "comm/settings/comm_settings.h"
#include "transport/net/endpoint/memory.h"
#include "transport/net/lane/shared_slots.h"
#include "transport/net/pxn/pool.h"

namespace tutti::comm {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::uint64_t allMeshBytes(const device::SlotBytes& slots, std::uint64_t nRanks, std::uint64_t nChannels) {
  return 2 * (nRanks - 1) * nChannels * meshEndBytes(slots);
}

TEST(MeshSlots, AreAsWishedWhereThereIsRoom) {
  const device::SlotBytes mesh = device::kGpuPolicy.meshSlotBytes;
  EXPECT_EQ(networkMeshSlots(mesh, 1, 32, 1024 * kMiB), mesh);
  EXPECT_EQ(networkMeshSlots(mesh, 0, 32, 1 * kMiB), mesh) << "a lone rank has no connections";
}

TEST(MeshSlots, ShrinkSoThatManyRanksTakeNoMoreThanAllowed) {
  for (const device::Policy* policy : {&device::kGpuPolicy, &device::kHostPolicy}) {
    const device::SlotBytes slots = networkMeshSlots(policy->meshSlotBytes, 999, 1, 1024 * kMiB);
    EXPECT_LE(allMeshBytes(slots, 1000, 1), 1024 * kMiB);
    EXPECT_GT(allMeshBytes(slots, 1000, 1), 400 * kMiB) << "no smaller than necessary";
    EXPECT_EQ(slots[1], 0u);
    EXPECT_EQ(slots[0] % (2 * device::kGrainBytes), 0u);
    EXPECT_EQ(slots[2] % device::kGrainBytes, 0u);
  }
}

TEST(MeshSlots, AreLargerWhereARankHasFewPeers) {
  const device::SlotBytes mesh = device::kGpuPolicy.meshSlotBytes;
  const device::SlotBytes all = networkMeshSlots(mesh, wishedPeers(0, 1000), 1, 1024 * kMiB);
  const device::SlotBytes few = networkMeshSlots(mesh, wishedPeers(50, 1000), 1, 1024 * kMiB);
  EXPECT_LT(all[2], mesh[2]);
  EXPECT_EQ(few, mesh);
  const MeshWorld world{wishedPeers(50, 1000), 8, 8, 16 << 10};
  EXPECT_GT(sharedMeshSlots(mesh, world, 4096 * kMiB)[0], sharedMeshSlots(mesh, {999, 8, 8, 16 << 10}, 4096 * kMiB)[0]);
}

TEST(MeshSlots, NeverBecomeUseless) {
  const device::SlotBytes slots = networkMeshSlots(device::kGpuPolicy.meshSlotBytes, 100000, 32, kMiB);
  EXPECT_EQ(slots, (device::SlotBytes{2 << 10, 0, 8 << 10}));
  const device::SlotBytes odd = networkMeshSlots({1024, 0, 512 * 5}, 100000, 32, kMiB);
  EXPECT_EQ(odd, (device::SlotBytes{1024, 0, 512 * 5})) << "smaller than that only if asked for";
  EXPECT_EQ(networkMeshSlots({0, 0, 20000 / 512 * 512}, 100000, 1, kMiB)[2] % 512, 0u);
}

MeshWorld gpus(int nRanks, std::uint64_t llMessageBytes = 16 << 10) {
  return {nRanks - 1, 8, 8, llMessageBytes};
}

TEST(SharedMeshSlots, TakeTheSameForAnyNumberOfRanksButForThoseOfLL) {
  const auto all = [](int nRanks) {
    const MeshWorld world = gpus(nRanks);
    const device::SlotBytes slots = sharedMeshSlots({64 << 10, 0, kUsualSharedSlot}, world, 4096 * kMiB);
    EXPECT_EQ(slots[2], 128u << 10) << "Simple does not shrink";
    const std::uint64_t ends = 2 * static_cast<std::uint64_t>(nRanks - 1) * 8 * sharedMeshEndBytes(slots);
    return meshBytesOf(slots, world, 16) - ends;
  };
  EXPECT_EQ(all(8), all(1000));
  EXPECT_GE(all(8), 2 * 8 * 16 * (std::uint64_t{128} << 10));
  EXPECT_LE(all(8), 34 * kMiB);
}

TEST(NetMessageStep, IsLongWhereMessagesLieInTheBuffers) {
  CommSettings settings;
  settings.netSharedSlots = 16;
  EXPECT_EQ(netMessageStep(512 << 10, settings, false), 128u << 10);
  EXPECT_EQ(netMessageStep(64 << 10, settings, false), 64u << 10);
  EXPECT_EQ(netMessageStep(128 << 10, settings, true), 512u << 10);
  EXPECT_EQ(sharedNetSlots(settings, false), 16u);
  EXPECT_EQ(sharedNetSlots(settings, true), 4u) << "as much memory";
  settings.netSharedSlots = 2;
  EXPECT_EQ(sharedNetSlots(settings, true), 1u);
}

/// As docs/network.md has it.
TEST(NetMessageStep, MakesARelaysRingAsLargeAsIsSaid) {
  CommSettings settings;
  settings.netSharedSlots = 16;
  const auto kilobytes = [&](bool inPlace) {
    const std::uint32_t slots = net::pxn::poolSlots(sharedNetSlots(settings, inPlace));
    return net::pxn::poolBytes({slots, netMessageStep(128 << 10, settings, inPlace), false}) >> 10;
  };
  EXPECT_EQ(kilobytes(false), 1028u);
  EXPECT_EQ(kilobytes(true), 2052u);
}

TEST(NetMessageStep, IsWhatTheUserAskedFor) {
  CommSettings asked;
  asked.netSharedSlots = 16;
  asked.messages.netChunk = 64 << 10;
  CommSettings buffers;
  buffers.netSharedSlots = 16;
  buffers.buffers.simple = 32 << 10;
  CommSettings own;
  for (const bool inPlace : {false, true}) {
    for (const CommSettings* settings : {&asked, &buffers, &own}) {
      EXPECT_FALSE(takesLongSteps(*settings, device::kHostPolicy, inPlace));
    }
  }
  EXPECT_EQ(netMessageStep(64 << 10, asked, false), 64u << 10);
  EXPECT_EQ(netMessageStep(4 << 10, buffers, false), 4u << 10);
  EXPECT_EQ(netMessageStep(512 << 10, own, false), 512u << 10);
  EXPECT_EQ(sharedNetSlots(asked, false), 16u);
  EXPECT_EQ(sharedNetSlots(buffers, false), 16u);
  EXPECT_EQ(sharedNetSlots(own, false), 0u);
}

TEST(NetMessageStep, IsTheSameForBuffersThatAreAskedForAndThoseThatOneHasAnyway) {
  for (const device::Policy* policy : {&device::kGpuPolicy, &device::kHostPolicy}) {
    CommSettings settings;
    settings.netSharedSlots = 16;
    EXPECT_TRUE(takesLongSteps(settings, *policy, true));
    EXPECT_FALSE(takesLongSteps(settings, *policy, false));
    const auto usual = static_cast<std::uint32_t>(policy->slotBytes[2] * device::kSteps);
    for (const std::uint32_t bytes : {usual, usual + 1, 2 * usual}) {
      settings.buffers.simple = bytes;
      EXPECT_TRUE(takesLongSteps(settings, *policy, true)) << bytes;
    }
    settings.buffers.simple = policy->meshSlotBytes[2];
    EXPECT_FALSE(takesLongSteps(settings, *policy, true));
  }
}

TEST(SharedMeshSlots, TakeATenthOfWhatOnesOfTheirOwnTake) {
  const auto& policy = device::kHostPolicy;
  const MeshWorld world{999, 1, 1, policy.llMessageBytes};
  const device::SlotBytes own = networkMeshSlots(policy.meshSlotBytes, 999, 1, 4096 * kMiB);
  const device::SlotBytes shared = sharedMeshSlots(policy.meshSlotBytes, world, 4096 * kMiB);
  EXPECT_LT(10 * meshBytesOf(shared, world, 16), meshBytesOf(own, world, 0));
}

TEST(SharedMeshSlots, KeepLLWithinItsShareAndUseful) {
  const auto slotsFor = [](const MeshWorld& world) {
    return sharedMeshSlots(device::kGpuPolicy.meshSlotBytes, world, 4096 * kMiB);
  };
  EXPECT_EQ(slotsFor(gpus(8))[0], 16u << 10);
  EXPECT_EQ(slotsFor(gpus(8, 1 << 10))[0], 2u << 10);
  EXPECT_EQ(slotsFor(gpus(8, 0))[0], 2u << 10);
  EXPECT_EQ(slotsFor(gpus(8, ~std::uint64_t{0} / 4))[0], 16u << 10);
  EXPECT_LE(2 * 299 * 8 * sharedMeshEndBytes(slotsFor(gpus(300))), 256 * kMiB);
  EXPECT_EQ(slotsFor(gpus(100000))[0], 2u << 10);
  EXPECT_EQ(sharedMeshSlots({512, 0, 1024}, gpus(8), kMiB), (device::SlotBytes{512, 0, 1024}));
}

}  // namespace
}  // namespace tutti::comm
