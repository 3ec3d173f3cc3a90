// The send/recv kernel: rounds of messages between ranks, to oneself, of no length.
#include <gtest/gtest.h>

#include <vector>

#include "device/thread_executor.h"
#include "device/world.h"

namespace tutti::device::test {
namespace {

std::byte pattern(int from, int to, std::size_t i) {
  return static_cast<std::byte>((i * 7 + static_cast<std::size_t>(from * 31 + to * 5)) % 251);
}

/// Every rank exchanges `bytes` with every rank, itself included, in one launch.
void exchangeAll(World& world, std::size_t bytes, unsigned threads) {
  const int n = world.shape().nRanks;
  std::vector<std::vector<std::byte>> in(n), out(n);
  const simt::HostKernel* kernel = findKernel("tutti_SendRecv_Copy_i8");
  ASSERT_NE(kernel, nullptr);
  {
    std::vector<std::unique_ptr<ThreadLaunch>> launches;
    for (int r = 0; r < n; ++r) {
      in[r].resize(bytes * n + 1);
      out[r].resize(bytes * n + 1);
      KernelArgs args{};
      args.comm = world.comm(r);
      args.nWorks = static_cast<std::uint32_t>(n);
      for (int k = 0; k < n; ++k) {
        const int to = (r + k) % n;
        const int from = (r + n - k) % n;
        for (std::size_t i = 0; i < bytes; ++i) in[r][to * bytes + i] = pattern(r, to, i);
        args.p2p[k] = {.send = in[r].data() + to * bytes, .recv = out[r].data() + from * bytes, .sendBytes = bytes,
                       .recvBytes = bytes, .sendPeer = to, .recvPeer = from, .channelLo = 0,
                       .channelHi = static_cast<std::uint8_t>(world.shape().nChannels - 1)};
      }
      launches.push_back(std::make_unique<ThreadLaunch>(*kernel, world.shape().nChannels, threads, args));
    }
  }
  for (int r = 0; r < n; ++r) {
    for (int from = 0; from < n; ++from) {
      for (std::size_t i = 0; i < bytes; ++i) {
        ASSERT_EQ(out[r][from * bytes + i], pattern(from, r, i)) << from << " -> " << r << " byte " << i;
      }
    }
  }
}

TEST(SendRecv, EveryRankExchangesWithEveryRank) {
  for (const int nRanks : {1, 2, 3, 5}) {
    for (const unsigned channels : {1u, 2u}) {
      World world({.nRanks = nRanks, .nChannels = channels, .slotBytes = 512});
      for (const std::size_t bytes : {0, 1, 513, 9001}) exchangeAll(world, bytes, 2);
    }
  }
}

TEST(SendRecv, HalvesOfABlockSendAndReceive) {
  World world({.nRanks = 2, .slotBytes = 512});
  for (const std::size_t bytes : {0, 700, 6000}) {
    exchangeAll(world, bytes, 64);
    exchangeAll(world, bytes, 32);
  }
}

TEST(SendRecv, AbortEndsAReceiverWithoutSender) {
  World world({.nRanks = 2});
  std::vector<std::byte> data(100);
  KernelArgs args{};
  args.comm = world.comm(0);
  args.nWorks = 1;
  args.p2p[0] = {.recv = data.data(), .recvBytes = 100, .sendPeer = -1, .recvPeer = 1};
  ThreadLaunch launch(*findKernel("tutti_SendRecv_Copy_i8"), 1, 2, args);
  std::atomic_ref<std::uint32_t>(*world.abortWord()).store(1);
}

}  // namespace
}  // namespace tutti::device::test
