// The kernel of messages over a network whose connections share slots, so few that everybody waits for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "device/recv_sequence.h"
#include "device/thread_executor.h"
#include "transport/net/sharing_world.h"

namespace tutti::test {
namespace {

using device::KernelArgs;
using device::P2pWork;
using device::test::ThreadLaunch;
using device::test::World;

std::byte pattern(int from, int to, std::size_t i) {
  return static_cast<std::byte>((i * 7 + static_cast<std::size_t>(from * 31 + to * 5)) % 251);
}

/// `rounds` times everybody exchanges a message with everybody in one launch, the next one longer.
void exchangeAll(device::test::World& world, std::size_t bytes, unsigned threads, int rounds = 1) {
  const int n = world.shape().nRanks;
  const auto total = static_cast<std::size_t>(n * rounds);
  const std::size_t room = bytes + static_cast<std::size_t>(rounds);
  std::vector<std::vector<std::byte>> in(n), out(n);
  const simt::HostKernel* kernel = device::test::findKernel("tutti_SendRecv_Copy_i8");
  ASSERT_NE(kernel, nullptr);
  {
    std::vector<std::unique_ptr<device::test::ThreadLaunch>> launches;
    for (int r = 0; r < n; ++r) {
      in[r].resize(room * total);
      out[r].resize(room * total);
      device::KernelArgs args{};
      args.comm = world.comm(r);
      for (int round = 0; round < rounds; ++round) {
        for (int k = 0; k < n; ++k) {
          const int to = (r + k) % n;
          const int from = (r + n - k) % n;
          const std::size_t length = bytes + static_cast<std::size_t>(round);
          std::byte* const source = in[r].data() + static_cast<std::size_t>(round * n + to) * room;
          for (std::size_t i = 0; i < length; ++i) source[i] = pattern(r, to + round, i);
          args.p2p[args.nWorks++] = {.send = source,
                                     .recv = out[r].data() + static_cast<std::size_t>(round * n + from) * room,
                                     .sendBytes = length,
                                     .recvBytes = length,
                                     .sendPeer = to,
                                     .recvPeer = from,
                                     .channelLo = 0,
                                     .channelHi = static_cast<std::uint8_t>(world.shape().nChannels - 1),
                                     .sendProtocol = device::Protocol::Simple,
                                     .recvProtocol = device::Protocol::Simple};
        }
      }
      device::numberReceives(args.p2p, args.nWorks, r);
      launches.push_back(std::make_unique<device::test::ThreadLaunch>(*kernel, world.shape().nChannels, threads, args));
    }
  }
  for (int r = 0; r < n; ++r) {
    for (int at = 0; at < n * rounds; ++at) {
      const int round = at / n;
      for (std::size_t i = 0; i < bytes + static_cast<std::size_t>(round); ++i) {
        ASSERT_EQ(out[r][static_cast<std::size_t>(at) * room + i], pattern(at % n, r + round, i))
            << at % n << " -> " << r << " round " << round << " byte " << i;
      }
    }
  }
}

TEST(SharedSlotsOfKernels, CarryMessagesOfAllSizesHoweverFewTheyAre) {
  for (const std::uint32_t slots : {1u, 2u, 16u}) {
    for (const unsigned channels : {1u, 2u}) {
      SharingWorld sharing({.nRanks = 3, .nChannels = channels, .slotBytes = 512}, slots, {});
      for (const std::size_t bytes : {0, 1, 513, 9001}) exchangeAll(sharing.world(), bytes, 2);
      EXPECT_GT(sharing.settle(), 0u);
    }
  }
}

TEST(SharedSlotsOfKernels, SufficeAlthoughSendsEndOnlyWhenTheyAreReceived) {
  for (const std::uint32_t slots : {1u, 4u}) {
    for (unsigned seed = 1; seed <= 3; ++seed) {
      SharingWorld sharing({.nRanks = 5, .slotBytes = 512}, slots,
                           {.seed = seed, .refuse = 20, .delay = 3, .rendezvous = true});
      exchangeAll(sharing.world(), 1500, 2);
      sharing.settle();
    }
  }
}

TEST(SharedSlotsOfKernels, KeepSeveralMessagesToOnePeerInOrder) {
  for (const std::uint32_t slots : {1u, 16u}) {
    SharingWorld sharing({.nRanks = 3, .slotBytes = 512}, slots, {.delay = 2, .rendezvous = true});
    exchangeAll(sharing.world(), 700, 2, 4);
    exchangeAll(sharing.world(), 0, 2, 3);
    // Nothing, 1 and 2 bytes take a slot each, as 700 and so on take two.
    EXPECT_EQ(sharing.settle(), 2u * 3 * 2 * (4 * 2 + 3));
  }
}

TEST(SharedSlotsOfKernels, AreFilledAndEmptiedByManyThreads) {
  SharingWorld sharing({.nRanks = 2, .slotBytes = 512}, 4, {});
  for (const std::size_t bytes : {0, 700, 6000, 20000}) exchangeAll(sharing.world(), bytes, 64);
  sharing.settle();
}

TEST(SharedSlotsOfKernels, AreNotTakenForWhatIsSentAndReceivedInPlace) {
  SharingWorld sharing({.nRanks = 2, .slotBytes = 512, .pulls = true}, 4, {});
  exchangeAll(sharing.world(), 2048, 2);
  EXPECT_EQ(sharing.settle(), 0u);
  EXPECT_EQ(sharing.net().unregistered, 2u * 8);
}

TEST(SharedSlotsOfKernels, AreTakenBetweenWhatIsReceivedInPlace) {
  for (const std::uint32_t slots : {1u, 2u, 16u}) {
    for (unsigned seed = 1; seed <= 3; ++seed) {
      SharingWorld sharing({.nRanks = 3, .slotBytes = 512, .pulls = true, .pullLeast = 400}, slots,
                           {.seed = seed, .delay = 3, .rendezvous = true});
      exchangeAll(sharing.world(), 300, 2, 3);    // all through slots
      exchangeAll(sharing.world(), 700, 2, 4);    // every second step
      exchangeAll(sharing.world(), 20000, 2, 2);  // more steps than there are words for
      EXPECT_EQ(sharing.settle(), 2u * 3 * 2 * (3 + 4 + 2));
      EXPECT_EQ(sharing.net().unregistered, 2u * 3 * 2 * (4 + 2 * 39));
    }
  }
}

TEST(SharedSlotsOfKernels, AreNotNeededByManyThreadsForWhatIsReceivedInPlace) {
  SharingWorld sharing({.nRanks = 2, .slotBytes = 512, .pulls = true, .pullLeast = 200}, 4, {});
  for (const std::size_t bytes : {0, 700, 6000, 20000}) exchangeAll(sharing.world(), bytes, 64);
  sharing.settle();
}

TEST(SharedSlotsOfKernels, LetNobodyWaitAfterAnAbort) {
  SharingWorld sharing({.nRanks = 2, .slotBytes = 512}, 2, {.rendezvous = true});
  std::vector<std::byte> data(10000);
  for (const bool receives : {true, false}) {
    device::KernelArgs args{};
    args.comm = sharing.world().comm(0);
    args.nWorks = 1;
    args.p2p[0] = {.send = data.data(),
                   .recv = data.data(),
                   .sendBytes = 10000,
                   .recvBytes = 10000,
                   .sendPeer = receives ? -1 : 1,
                   .recvPeer = receives ? 1 : -1,
                   .sendProtocol = device::Protocol::Simple,
                   .recvProtocol = device::Protocol::Simple};
    std::atomic_ref(*sharing.world().abortWord()).store(0);
    device::test::ThreadLaunch launch(*device::test::findKernel("tutti_SendRecv_Copy_i8"), 1, 2, args);
    std::atomic_ref(*sharing.world().abortWord()).store(1);
  }
}

TEST(GroupedReceives, CarryMessagesOfAllSizesOnSeveralChannels) {
  unsigned mostAtOnce = 0;
  for (const std::uint32_t slots : {1u, 16u}) {
    SharingWorld sharing({.nRanks = 3, .nChannels = 2, .slotBytes = 512}, slots,
                         {.refuse = 10, .delay = 1, .maxRecvs = 8});
    for (const std::size_t bytes : {0, 1, 1537, 9001}) exchangeAll(sharing.world(), bytes, 2, 2);
    EXPECT_GT(sharing.settle(), 0u);
    mostAtOnce = std::max(mostAtOnce, sharing.net().mostAtOnce);
  }
  EXPECT_GT(mostAtOnce, 1u);
}

/// Messages from rank 0 to rank 1 on channels of their own choice, in launches that either rank cuts as it likes.
class Stream {
 public:
  Stream(device::test::World& world, std::size_t messages, unsigned seed) : world_(world), dice_(seed) {
    for (std::size_t i = 0; i < messages; ++i) {
      const auto lo = static_cast<std::uint8_t>(dice_() % world.shape().nChannels);
      const auto hi = static_cast<std::uint8_t>(lo + dice_() % (world.shape().nChannels - lo));
      const std::size_t bytes = dice_() % 3 == 0 ? dice_() % 3 : dice_() % 12000;
      add(bytes, lo, hi);
    }
  }
  void add(std::size_t bytes, std::uint8_t lo, std::uint8_t hi) {
    const auto i = messages_.size();
    messages_.push_back({std::vector<std::byte>(bytes + 1), std::vector<std::byte>(bytes + 1), lo, hi});
    for (std::size_t b = 0; b < bytes; ++b) messages_[i].out[b] = pattern(static_cast<int>(i), 1, b);
  }
  device::KernelArgs launch(int rank, std::size_t first, std::size_t end) {
    device::KernelArgs args{};
    args.comm = world_.comm(rank);
    for (; first != end; ++first) {
      Message& m = messages_[first];
      device::P2pWork& work = args.p2p[args.nWorks++];
      work = {.sendPeer = -1,
              .recvPeer = -1,
              .channelLo = m.lo,
              .channelHi = m.hi,
              .sendProtocol = device::Protocol::Simple,
              .recvProtocol = device::Protocol::Simple};
      if (rank == 0) work.send = m.out.data(), work.sendBytes = m.out.size() - 1, work.sendPeer = 1;
      if (rank == 1) work.recv = m.in.data(), work.recvBytes = m.in.size() - 1, work.recvPeer = 0;
    }
    device::numberReceives(args.p2p, args.nWorks, rank);
    return args;
  }
  /// All that this rank has to do, in launches of up to `most` messages.
  void run(int rank, std::size_t most, unsigned seed) {
    std::minstd_rand dice(seed);
    const simt::HostKernel* kernel = device::test::findKernel("tutti_SendRecv_Copy_i8");
    for (std::size_t first = 0; first < messages_.size();) {
      const std::size_t end = std::min(messages_.size(), first + 1 + dice() % most);
      device::test::ThreadLaunch(*kernel, world_.shape().nChannels, 2, launch(rank, first, end));
      first = end;
    }
  }
  void check() const {
    for (std::size_t i = 0; i < messages_.size(); ++i) EXPECT_EQ(messages_[i].in, messages_[i].out) << "message " << i;
  }

 private:
  struct Message {
    std::vector<std::byte> out, in;
    std::uint8_t lo, hi;
  };
  device::test::World& world_;
  std::minstd_rand dice_;
  std::vector<Message> messages_;
};

TEST(GroupedReceives, KeepMessagesOfAnyChannelsInOrderHoweverRanksCutTheirLaunches) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    SharingWorld sharing({.nRanks = 2, .nChannels = 3, .slotBytes = 512}, 1u << seed % 5,
                         {.seed = seed, .refuse = 10, .delay = 2, .maxRecvs = 4});
    Stream stream(sharing.world(), 24, seed);
    std::thread sender([&] { stream.run(0, seed % 2 == 0 ? 1 : 5, seed); });
    stream.run(1, seed % 2 == 0 ? 40 : 6, seed + 100);
    sender.join();
    stream.check();
    sharing.settle();
  }
}

TEST(GroupedReceives, DoNotWaitForALaterMessageBeforeAnEarlierOneIsThere) {
  // One block of the receiver is ahead: it has asked for the second message before the other has for the first, whose
  // sender does not go on to the second before all of the first is out.
  SharingWorld sharing({.nRanks = 2, .nChannels = 2, .slotBytes = 512}, 4, {.maxRecvs = 8});
  Stream stream(sharing.world(), 0, 1);
  stream.add(512 * 40, 0, 1);
  stream.add(100, 0, 0);
  const simt::HostKernel& kernel = *device::test::findKernel("tutti_SendRecv_Copy_i8");
  std::thread sender([&] { stream.run(0, 1, 1); });
  {
    device::KernelArgs args = stream.launch(1, 0, 2);
    device::test::ThreadLaunch ahead(kernel, 1, 2, args);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    args.firstChannel = 1;
    device::test::ThreadLaunch behind(kernel, 1, 2, args);
  }
  sender.join();
  stream.check();
  sharing.settle();
}

}  // namespace
}  // namespace tutti::test
