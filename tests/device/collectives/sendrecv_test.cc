// The send/recv kernel: rounds of messages between ranks, to oneself, of no length.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "device/block_executor.h"
#include "device/launch.h"
#include "device/world.h"

namespace tutti::device::test {
namespace {

std::byte pattern(int from, int to, std::size_t i) {
  return static_cast<std::byte>((i * 7 + static_cast<std::size_t>(from * 31 + to * 5)) % 251);
}

/// Simple for all; LL (asked for) for all but the messages of rank 1.
Protocol protocolFor(Protocol asked, int from) {
  return from == 1 ? Protocol::Simple : asked;
}

/// Every rank exchanges `bytes` with every rank, itself included, in one launch.
void exchangeAll(World& world, std::size_t bytes, unsigned threads, Protocol protocol) {
  const int n = world.shape().nRanks;
  std::vector<std::vector<std::byte>> in(n), out(n);
  const simt::HostKernel* kernel = findKernel("tutti_SendRecv_Copy_i8");
  ASSERT_NE(kernel, nullptr);
  {
    std::vector<std::unique_ptr<Launch>> launches;
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
        args.p2p[k] = {.send = in[r].data() + to * bytes,
                       .recv = out[r].data() + from * bytes,
                       .sendBytes = bytes,
                       .recvBytes = bytes,
                       .sendPeer = to,
                       .recvPeer = from,
                       .channelLo = 0,
                       .channelHi = static_cast<std::uint8_t>(world.shape().nChannels - 1),
                       .sendProtocol = protocolFor(protocol, r),
                       .recvProtocol = protocolFor(protocol, from)};
      }
      launches.push_back(std::make_unique<Launch>(*kernel, world.shape().nChannels, threads, args));
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

class SendRecv : public testing::TestWithParam<Protocol> {};
INSTANTIATE_TEST_SUITE_P(Protocols, SendRecv, testing::Values(Protocol::LL, Protocol::Simple),
                         [](const auto& p) { return std::string(p.param == Protocol::LL ? "LL" : "Simple"); });

TEST_P(SendRecv, EveryRankExchangesWithEveryRank) {
  for (const int nRanks : {1, 2, 3, 5}) {
    for (const unsigned channels : {1u, 2u}) {
      World world({.nRanks = nRanks, .nChannels = channels, .slotBytes = 512});
      for (const std::size_t bytes : {0, 1, 513, 9001}) exchangeAll(world, bytes, 2, GetParam());
    }
  }
}

TEST_P(SendRecv, HalvesOfABlockSendAndReceive) {
  World world({.nRanks = 2, .slotBytes = 512});
  for (const std::size_t bytes : {0, 700, 6000}) {
    exchangeAll(world, bytes, 64, GetParam());
    exchangeAll(world, bytes, 32, GetParam());
  }
}

TEST_P(SendRecv, AbortEndsAReceiverWithoutSenderAndASenderWithoutReceiver) {
  World world({.nRanks = 2, .slotBytes = 512});
  for (const unsigned threads : {2u, 64u}) {
    for (const bool receives : {true, false}) {
      std::vector<std::byte> data(10000);
      KernelArgs args{};
      args.comm = world.comm(0);
      args.nWorks = 1;
      args.p2p[0] = {.send = data.data(),
                     .recv = data.data(),
                     .sendBytes = 10000,
                     .recvBytes = 10000,
                     .sendPeer = receives ? -1 : 1,
                     .recvPeer = receives ? 1 : -1,
                     .sendProtocol = GetParam(),
                     .recvProtocol = GetParam()};
      std::atomic_ref<std::uint32_t>(*world.abortWord()).store(0);
      Launch launch(*findKernel("tutti_SendRecv_Copy_i8"), 1, threads, args);
      std::atomic_ref<std::uint32_t>(*world.abortWord()).store(1);
    }
  }
}

/// After an abort the sender's memory may be anything: what was read of it is no message.
TEST(SendRecvAbort, WhatAnAbortedSenderOfferedIsNotReceived) {
  World world({.nRanks = 2, .slotBytes = 512, .pulls = true});
  std::vector<std::byte> sent(5000), received(5000);
  KernelArgs sends{};
  sends.comm = world.comm(0);
  sends.nWorks = 1;
  sends.p2p[0] = {.send = sent.data(),
                  .recv = nullptr,
                  .sendBytes = 2000,
                  .recvBytes = 0,
                  .sendPeer = 1,
                  .recvPeer = -1,
                  .sendProtocol = Protocol::Simple,
                  .recvProtocol = Protocol::Simple};
  const std::atomic_ref<std::uint32_t> abortWord(*world.abortWord());
  const RecvConn& in = world.comm(1)->channels[0].recvFrom(ConnKind::Mesh, 0);
  {
    Launch sender(*findKernel("tutti_SendRecv_Copy_i8"), 1, 2, sends);
    while (std::atomic_ref(*in.tailOf(Protocol::Simple)).load() < 4) std::this_thread::yield();
    abortWord.store(1);
  }
  abortWord.store(0);
  KernelArgs receives{};
  receives.comm = world.comm(1);
  receives.nWorks = 1;
  receives.p2p[0] = {.send = nullptr,
                     .recv = received.data(),
                     .sendBytes = 0,
                     .recvBytes = 2000,
                     .sendPeer = -1,
                     .recvPeer = 0,
                     .sendProtocol = Protocol::Simple,
                     .recvProtocol = Protocol::Simple};
  std::atomic<bool> ended = false;
  std::thread receiver([&] {
    { Launch launch(*findKernel("tutti_SendRecv_Copy_i8"), 1, 2, receives); }
    ended = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(ended) << "its communicator has not been aborted yet";
  EXPECT_EQ(*in.headOf(Protocol::Simple), 0U);
  abortWord.store(1);
  receiver.join();
  EXPECT_EQ(*in.headOf(Protocol::Simple), 0U);
}

/// The peer's message "lies" where this rank counts what it has sent: what arrives tells whether that came first.
TEST(SendRecvOrder, WhatIsSentIsOfferedBeforeAnythingIsReceived) {
  World world({.nRanks = 2, .slotBytes = 512, .pulls = true});
  const SendConn& out = world.comm(0)->channels[0].sendTo(ConnKind::Mesh, 1);
  const RecvConn& in = world.comm(0)->channels[0].recvFrom(ConnKind::Mesh, 1);
  std::uint64_t sent = 17;
  std::uint64_t received = 99;
  const SendConn& theirs = world.comm(1)->channels[0].sendTo(ConnKind::Mesh, 0);
  *theirs.pull.addresses->of(0) = reinterpret_cast<std::uint64_t>(out.tailOf(Protocol::Simple));
  *in.tailOf(Protocol::Simple) = 1;
  KernelArgs args{};
  args.comm = world.comm(0);
  args.nWorks = 1;
  args.p2p[0] = {.send = &sent,
                 .recv = &received,
                 .sendBytes = 8,
                 .recvBytes = 8,
                 .sendPeer = 1,
                 .recvPeer = 1,
                 .sendProtocol = Protocol::Simple,
                 .recvProtocol = Protocol::Simple};
  BlockExecutor executor({});
  executor.launch(*findKernel("tutti_SendRecv_Copy_i8"), 1, 2, args);
  // The peer receives as soon as it can.
  const bool ended = executor.run([&] { return std::exchange(*out.headOf(Protocol::Simple), 1) == 0; });
  EXPECT_TRUE(ended);
  EXPECT_EQ(received, 1u) << "a peer that comes a little later would wait until this rank has received";
}

}  // namespace
}  // namespace tutti::device::test
