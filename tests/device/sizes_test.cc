// What kernels say of their slots to whoever moves them over a network (SendWords, RecvWords).
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "device/collective_run.h"
#include "device/collectives/pat.h"

namespace tutti::device::test {
namespace {

using Sizes = std::vector<std::uint32_t>;

/// What was said of the steps since `firstStep`, of which there may be kSteps.
Sizes toldBy(const World& world, ConnKind kind, int from, int to, Protocol protocol) {
  const SendConn& view = world.comm(from)->channels[0].sendTo(kind, to);
  Sizes sizes;
  const std::uint64_t end = *view.stepOf(protocol);
  EXPECT_LE(end - world.shape().firstStep, static_cast<std::uint64_t>(kSteps));
  for (std::uint64_t step = world.shape().firstStep; step != end; ++step) {
    const std::uint64_t word = *view.words->size[static_cast<int>(protocol)].of(step);
    EXPECT_TRUE(isSizeOf(word, step)) << "nothing was said of step " << step;
    sizes.push_back(static_cast<std::uint32_t>(word));
  }
  return sizes;
}

/// What the receiver of the Simple protocol said that it would read of these steps.
Sizes expectedBy(const World& world, ConnKind kind, int at, int from) {
  const RecvConn& view = world.comm(at)->channels[0].recvFrom(kind, from);
  Sizes sizes;
  for (std::uint64_t step = world.shape().firstStep; step != *view.stepOf(Protocol::Simple); ++step) {
    EXPECT_TRUE(isSizeOf(*view.words->expected.of(step), step)) << "nothing was said of step " << step;
    sizes.push_back(static_cast<std::uint32_t>(*view.words->expected.of(step)));
  }
  return sizes;
}

/// What `from` told of its slots for `to`, which must expect the same.
Sizes agreedOn(const World& world, ConnKind kind, int from, int to, Protocol protocol) {
  const Sizes told = toldBy(world, kind, from, to, protocol);
  if (protocol == Protocol::Simple) {
    EXPECT_EQ(expectedBy(world, kind, to, from), told);
  }
  return told;
}

/// One message from rank 0 to rank 1.
void sendOne(World& world, std::size_t bytes, unsigned threads, Protocol protocol) {
  std::vector<std::byte> in(bytes + 1), out(bytes + 1);
  const simt::HostKernel* kernel = findKernel("tutti_SendRecv_Copy_i8");
  ASSERT_NE(kernel, nullptr);
  for (std::size_t i = 0; i < bytes; ++i) in[i] = static_cast<std::byte>(i * 7 + 1);
  {
    std::vector<std::unique_ptr<Launch>> launches;
    for (int r = 0; r < 2; ++r) {
      KernelArgs args{};
      args.comm = world.comm(r);
      args.nWorks = 1;
      args.p2p[0] = {.send = in.data(),
                     .recv = out.data(),
                     .sendBytes = bytes,
                     .recvBytes = bytes,
                     .sendPeer = r == 0 ? 1 : -1,
                     .recvPeer = r == 1 ? 0 : -1,
                     .sendProtocol = protocol,
                     .recvProtocol = protocol};
      launches.push_back(std::make_unique<Launch>(*kernel, 1, threads, args));
    }
  }
  EXPECT_EQ(out, in);
}

Sizes slotsOf(std::size_t bytes, std::size_t slot) {
  Sizes sizes(std::max<std::size_t>(1, (bytes + slot - 1) / slot), static_cast<std::uint32_t>(slot));
  sizes.back() = static_cast<std::uint32_t>(bytes - (sizes.size() - 1) * slot);
  return sizes;
}

/// Steps at which all words are fresh, whose low half comes round, and all of whose bits do.
const std::uint64_t kFirstSteps[] = {0, (std::uint64_t{1} << 32) - 3, ~std::uint64_t{0} - 2};

class ToldSizes : public testing::TestWithParam<Protocol> {};
INSTANTIATE_TEST_SUITE_P(Protocols, ToldSizes, testing::Values(Protocol::LL, Protocol::LL128, Protocol::Simple),
                         [](const auto& p) { return std::string(protocolName(p.param)); });

TEST_P(ToldSizes, OfAMessageAreToldSlotBySlot) {
  if (GetParam() == Protocol::LL128) return;  // has no messages
  for (const std::uint64_t first : kFirstSteps) {
    for (const unsigned threads : {2u, 64u}) {
      for (const std::size_t bytes : {0, 1, 512, 513, 3000}) {
        World world({.nRanks = 2, .slotBytes = 512, .firstStep = first, .tells = true});
        sendOne(world, bytes, threads, GetParam());
        EXPECT_EQ(agreedOn(world, ConnKind::Mesh, 0, 1, GetParam()), slotsOf(bytes, 512)) << bytes << " at " << first;
      }
    }
  }
}

TEST_P(ToldSizes, OfARingAddUpToWhatARankSends) {
  for (const std::uint64_t first : kFirstSteps) {
    for (const unsigned threads : {1u, 64u}) {
      World world({.nRanks = 2, .slotBytes = 1024, .firstStep = first, .tells = true});
      const Case c{.func = Func::AllReduce, .protocol = GetParam(), .count = 700, .threads = threads};
      if (isLeftOut(kernelName(c.func, c.algorithm, c.protocol, c.op, c.type))) return;
      check(world, c);
      for (int r = 0; r < 2; ++r) {
        const Sizes sizes = agreedOn(world, ConnKind::Graph, r, 1 - r, GetParam());
        EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), 0u), 700 * sizeof(float));
      }
    }
  }
}

TEST(Sizes, OfALongMessageAreTheTwoHalvesThatSlotsHold) {
  constexpr std::size_t kSlot = 512 << 10;
  const std::pair<std::size_t, Sizes> cases[] = {
      {100'000, {100'000}},          {200'000, {131'072, 68'928}},
      {300'001, {150'016, 149'985}}, {kSlot, {kSlot / 2, kSlot / 2}},
      {2 * kSlot, {kSlot, kSlot}},   {2 * kSlot + 1, {kSlot, kSlot, 1}},
  };
  for (const auto& [bytes, sizes] : cases) {
    World world({.nRanks = 2, .slotBytes = kSlot, .tells = true});
    sendOne(world, bytes, 2, Protocol::Simple);
    EXPECT_EQ(agreedOn(world, ConnKind::Mesh, 0, 1, Protocol::Simple), sizes) << bytes;
  }
}

TEST(Sizes, OfTwoRanksThatExchangeAreThoseOfTheirInputs) {
  const Case c{.func = Func::AllReduce, .protocol = Protocol::Simple, .count = 700, .pairMethod = PairMethod::Exchange};
  if (isLeftOut(kernelName(c.func, c.algorithm, c.protocol, c.op, c.type))) return;
  World world({.nRanks = 2, .slotBytes = 1024, .tells = true});
  check(world, c);
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(agreedOn(world, ConnKind::Graph, r, 1 - r, Protocol::Simple), slotsOf(700 * sizeof(float), 1024));
  }
}

TEST_P(ToldSizes, OfATreeAreTheSameForAllChildren) {
  for (const unsigned threads : {1u, 64u}) {
    World world({.nRanks = 4, .slotBytes = 1024, .tells = true});
    const Case c{.func = Func::AllReduce,
                 .algorithm = Algorithm::Tree,
                 .protocol = GetParam(),
                 .count = 300,
                 .threads = threads};
    if (isLeftOut(kernelName(c.func, c.algorithm, c.protocol, c.op, c.type))) return;
    check(world, c);
    for (int child = 1; child < 4; ++child) {
      const Sizes up = agreedOn(world, ConnKind::Graph, child, 0, GetParam());
      EXPECT_EQ(std::accumulate(up.begin(), up.end(), 0u), 300 * sizeof(float));
      EXPECT_EQ(agreedOn(world, ConnKind::Graph, 0, child, GetParam()), up);
    }
  }
}

TEST(Sizes, OfPatReachToTheEndOfTheLastBlock) {
  for (const Func func : {Func::AllGather, Func::ReduceScatter}) {
    World world({.nRanks = 4, .slotBytes = 2048, .tells = true});
    const Case c{.func = func, .algorithm = Algorithm::Pat, .count = 100, .threads = 64};
    if (isLeftOut(kernelName(c.func, c.algorithm, c.protocol, c.op, c.type))) continue;
    check(world, c);
    const std::uint64_t bytes = 100 * sizeof(float);
    const Turns turns = func == Func::AllGather ? patTurns(bytes, 4, 2048, 1) : patTurns(100, 4, 2048, sizeof(float));
    const std::uint64_t stride = turns.chunk * (func == Func::AllGather ? 1 : sizeof(float));
    ASSERT_EQ(turns.n, 1u);
    for (int r = 0; r < 4; ++r) {
      const int near = (func == Func::AllGather ? r + 3 : r + 1) % 4;
      const int far = (r + 2) % 4;
      EXPECT_EQ(agreedOn(world, ConnKind::Graph, r, near, Protocol::Simple), Sizes{static_cast<std::uint32_t>(bytes)});
      EXPECT_EQ(agreedOn(world, ConnKind::Graph, r, far, Protocol::Simple),
                Sizes{static_cast<std::uint32_t>(stride + bytes)});
    }
  }
}

TEST(Sizes, OfOfferedContentAreToldAsWell) {
  World world({.nRanks = 2, .slotBytes = 512, .pulls = true, .tells = true});
  sendOne(world, 1300, 2, Protocol::Simple);
  EXPECT_EQ(agreedOn(world, ConnKind::Mesh, 0, 1, Protocol::Simple), slotsOf(1300, 512));
  EXPECT_NE(world.comm(0)->channels[0].sendTo(ConnKind::Mesh, 1).pull.addresses->word[0], 0u);
}

}  // namespace
}  // namespace tutti::device::test
