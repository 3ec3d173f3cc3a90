// Operations end to end: ranks as threads, kernels on the software GPU, results compared with what a loop computes.
#include "comm/state/communicator.h"
#include "comm/world.h"
#include "topo/machine/peer_info.h"

namespace tutti::comm {
namespace {

using test::countUp;
using test::Ints;
using test::Member;
using test::withComm;

void allReduceAdds(const test::Member& m, std::size_t count, int salt = 0) {
  const test::Ints in(m.gpu, test::countUp(m.rank * 1000 + salt, count));
  const test::Ints out(m.gpu, count, -1);
  ASSERT_EQ(ncclAllReduce(in.at(), out.at(), count, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
  m.sync();
  std::vector<int> expected(count);
  for (std::size_t i = 0; i < count; ++i) {
    expected[i] = m.size * (static_cast<int>(i) + salt) + 1000 * m.size * (m.size - 1) / 2;
  }
  EXPECT_EQ(out.read(), expected);
}

TEST(WorldCollectives, AllReduceAddsForEveryNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 5}) {
    test::withComm(ranks, [](test::Member& m) {
      for (const std::size_t count : {1U, 1000U, 50'001U}) allReduceAdds(m, count);
    });
  }
}

TEST(WorldCollectives, RootsAreRespected) {
  test::withComm(3, [](test::Member& m) {
    constexpr std::size_t kCount = 777;
    const test::Ints in(m.gpu, kCount, m.rank + 1);
    const test::Ints out(m.gpu, kCount, -1);
    ASSERT_EQ(ncclBroadcast(in.at(), out.at(), kCount, ncclInt32, 1, m.comm, m.stream()), ncclSuccess);
    m.sync();
    EXPECT_EQ(out.read(), std::vector<int>(kCount, 2));
    ASSERT_EQ(ncclReduce(in.at(), out.at(), kCount, ncclInt32, ncclSum, 2, m.comm, m.stream()), ncclSuccess);
    m.sync();
    EXPECT_EQ(out.read(), std::vector<int>(kCount, m.rank == 2 ? 6 : 2));
  });
}

TEST(WorldCollectives, GatheringAndScatteringPutBlocksInRankOrder) {
  test::withComm(3, [](test::Member& m) {
    constexpr std::size_t kCount = 129;
    const test::Ints own(m.gpu, kCount, m.rank);
    const test::Ints all(m.gpu, 3 * kCount, -1);
    ASSERT_EQ(ncclAllGather(own.at(), all.at(), kCount, ncclInt32, m.comm, m.stream()), ncclSuccess);
    m.sync();
    std::vector<int> expected;
    for (int r = 0; r < 3; ++r) expected.insert(expected.end(), kCount, r);
    EXPECT_EQ(all.read(), expected);
    const test::Ints part(m.gpu, kCount, -1);
    ASSERT_EQ(ncclReduceScatter(all.at(), part.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    m.sync();
    EXPECT_EQ(part.read(), std::vector<int>(kCount, 3 * m.rank));
  });
}

TEST(WorldCollectives, StreamsOfAGroupAllWaitForIt) {
  test::withComm(2, [](test::Member& m) {
    constexpr std::size_t kCount = 20'000;
    const gpu::Stream second = gpu::Stream::create(m.gpu).value();
    const test::Ints in(m.gpu, kCount, 1);
    const test::Ints a(m.gpu, kCount, -1);
    const test::Ints b(m.gpu, kCount, -1);
    for (int round = 0; round < 3; ++round) {
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      ASSERT_EQ(ncclAllReduce(in.at(), a.at(), kCount, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
      ASSERT_EQ(ncclAllReduce(in.at(), b.at(), kCount, ncclInt32, ncclSum, m.comm, second.get()), ncclSuccess);
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    }
    m.sync();
    EXPECT_EQ(a.read(), std::vector<int>(kCount, 2));
    EXPECT_EQ(b.read(), std::vector<int>(kCount, 2));
  });
}

TEST(WorldCollectives, CommunicatorsDoNotDisturbEachOther) {
  const ncclUniqueId secondId = test::newId();
  test::withComm(3, [&](test::Member& m) {
    test::Member other{2 - m.rank, m.size, nullptr, m.gpu, gpu::Stream::create(m.gpu).value()};
    ASSERT_EQ(ncclCommInitRank(&other.comm, m.size, secondId, other.rank), ncclSuccess);
    for (int i = 0; i < 5; ++i) {
      allReduceAdds(m, 1000, i);
      allReduceAdds(other, 500, 7 * i);
    }
    EXPECT_EQ(ncclCommDestroy(other.comm), ncclSuccess);
  });
}

/// What a program does whose threads or streams are not in step: rank 0 calls the first, rank 1 the second one first.
TEST(WorldCollectives, CommunicatorsMayBeCalledInAnotherOrderOnEachRank) {
  const ncclUniqueId secondId = test::newId();
  test::withComm(2, [&](test::Member& m) {
    test::Member other{m.rank, m.size, nullptr, m.gpu, gpu::Stream::create(m.gpu).value()};
    ASSERT_EQ(ncclCommInitRank(&other.comm, m.size, secondId, other.rank), ncclSuccess);
    for (const std::size_t count : {1000U, 50'001U}) {
      allReduceAdds(m, count);  // connects what is not connected yet
      allReduceAdds(other, count);
      const test::Ints a(m.gpu, count, m.rank + 1);
      const test::Ints b(m.gpu, count, m.rank + 10);
      const auto call = [&](const test::Member& on, const test::Ints& data) {
        ASSERT_EQ(ncclAllReduce(data.at(), data.at(), count, ncclInt32, ncclSum, on.comm, on.stream()), ncclSuccess);
      };
      if (m.rank == 0) call(m, a);
      call(other, b);
      if (m.rank != 0) call(m, a);
      m.sync();
      other.sync();
      EXPECT_EQ(a.read(), std::vector<int>(count, 3));
      EXPECT_EQ(b.read(), std::vector<int>(count, 21));
    }
    EXPECT_EQ(ncclCommDestroy(other.comm), ncclSuccess);
  });
}

TEST(WorldCollectives, EightBitFloatsAreReducedOnlyWhereEveryGpuCan) {
  test::allowLog("FP8 reduction support begins with sm90 capable devices. rank 1 on host ");
  test::withComm(2, [](test::Member& m) {
    topo::PeerInfo& old = m.comm->parts.peers[1];
    const topo::PeerInfo real = old;
    old.softGpu = 0;
    old.computeCapability = 89;
    const test::Ints in(m.gpu, 64, 0);
    const test::Ints out(m.gpu, 64, -1);
    for (const ncclDataType_t type : {ncclFloat8e4m3, ncclFloat8e5m2}) {
      EXPECT_EQ(ncclAllReduce(in.at(), out.at(), 16, type, ncclSum, m.comm, m.stream()), ncclInvalidArgument);
      EXPECT_NE(std::string(ncclGetLastError(m.comm)).find("has sm89"), std::string::npos);
      EXPECT_EQ(ncclAllReduce(in.at(), out.at(), 0, type, ncclSum, m.comm, m.stream()), ncclSuccess) << "nothing to do";
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
      EXPECT_EQ(ncclAllGather(in.at(), out.at(), 128, type, m.comm, m.stream()), ncclSuccess) << "a copy";
      ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;  // nothing is connected: no link would be found
      EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclSuccess);
    }
    old = real;
    EXPECT_EQ(ncclAllReduce(in.at(), out.at(), 16, ncclFloat8e5m2, ncclMax, m.comm, m.stream()), ncclSuccess);
    m.sync();
  });
}

TEST(WorldCollectives, ALoneRankTakesNoMemoryOfItsDevice) {
  test::withComm(1, [](test::Member& m) {
    allReduceAdds(m, 50'001);
    std::uint64_t bytes = ~std::uint64_t{0};
    EXPECT_EQ(ncclCommMemStats(m.comm, ncclStatGpuMemTotal, &bytes), ncclSuccess);
    EXPECT_LE(bytes, 64U << 10) << "it needs no connections";
  });
}

TEST(WorldCollectives, ALoneRankNeedsNoGroupEnd) {
  test::withComm(1, [](test::Member& m) {
    const test::Ints in(m.gpu, 100, 6);
    const test::Ints copied(m.gpu, 100, -1);
    const test::Ints scaled(m.gpu, 100, -1);
    int factor = 7;
    ncclRedOp_t op = ncclSum;
    ASSERT_EQ(ncclRedOpCreatePreMulSum(&op, &factor, ncclInt32, ncclScalarHostImmediate, m.comm), ncclSuccess);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclAllGather(in.at(), copied.at(), 100, ncclInt32, m.comm, m.stream()), ncclSuccess);
    EXPECT_EQ(ncclReduceScatter(in.at(), scaled.at(), 100, ncclInt32, op, m.comm, m.stream()), ncclSuccess);
    m.sync();
    EXPECT_EQ(copied.read(), std::vector<int>(100, 6));
    EXPECT_EQ(scaled.read(), std::vector<int>(100, 42));
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    EXPECT_EQ(ncclRedOpDestroy(op, m.comm), ncclSuccess);
  });
}

TEST(WorldCollectives, RanksMayShareADevice) {
  test::withComm(
      4, [](test::Member& m) { allReduceAdds(m, 5000); }, 1);
}

TEST(WorldCollectives, OneThreadDrivesAllRanks) {
  test::useDevice(0);
  constexpr std::size_t kCount = 3000;
  ncclComm_t comms[3] = {};
  ASSERT_EQ(ncclCommInitAll(comms, 3, nullptr), ncclSuccess);
  std::vector<test::Ints> out;
  std::vector<test::Ints> in;
  std::vector<gpu::Stream> streams;
  for (int r = 0; r < 3; ++r) {
    in.emplace_back(test::device(r), kCount, r + 1);
    out.emplace_back(test::device(r), kCount, -1);
    streams.push_back(gpu::Stream::create(test::device(r)).value());
  }
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (std::size_t r = 0; r < 3; ++r) {
    ASSERT_EQ(ncclAllReduce(in[r].at(), out[r].at(), kCount, ncclInt32, ncclSum, comms[r], streams[r].get()),
              ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  for (int r = 0; r < 3; ++r)
    ASSERT_TRUE(gpu::waitStream(test::device(r), streams[static_cast<std::size_t>(r)].get(), nullptr).ok());
  EXPECT_EQ(out[0].read(), std::vector<int>(kCount, -1)) << "the inner end must not launch";
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  for (std::size_t r = 0; r < 3; ++r) {
    ASSERT_TRUE(gpu::waitStream(test::device(static_cast<int>(r)), streams[r].get(), nullptr).ok());
    EXPECT_EQ(out[r].read(), std::vector<int>(kCount, 6));
  }
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << "in order, by one thread";
}

TEST(WorldCollectives, BuffersThatOverlapButNotInPlaceAreRefusedAndNothingElseIs) {
  test::allowLog("TUTTI_CHECK_OVERLAP");
  test::withComm(3, [](Member& m) {
    const Ints data(m.gpu, 30, m.rank);
    if (m.rank == 1) {
      EXPECT_EQ(ncclAllGather(data.at(), data.at(), 10, ncclInt32, m.comm, m.stream()), ncclInvalidArgument);
    }
    ASSERT_EQ(
        ncclAllGather(data.at(10 * static_cast<std::size_t>(m.rank)), data.at(), 10, ncclInt32, m.comm, m.stream()),
        ncclSuccess);
    m.sync();
    for (std::size_t i = 0; i < 30; ++i) EXPECT_EQ(data.read().at(i), static_cast<int>(i / 10));
  });
}

TEST(WorldGroup, ACallInItsMidstThatFailsIsNamedAndLeavesAllCommunicatorsSound) {
  test::expectLog("invalid type 77");
  constexpr std::size_t kRanks = 3;
  ncclComm_t comms[kRanks] = {};
  test::useDevice(0);
  ASSERT_EQ(ncclCommInitAll(comms, kRanks, nullptr), ncclSuccess);
  std::vector<Ints> data;
  for (int r = 0; r < static_cast<int>(kRanks); ++r) data.emplace_back(test::device(r), 100, r);
  const auto call = [&](std::size_t r, ncclDataType_t type) {
    return ncclAllReduce(data[r].at(), data[r].at(), 100, type, ncclSum, comms[r], nullptr);
  };
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(call(0, ncclInt32), ncclSuccess);
  EXPECT_EQ(call(1, static_cast<ncclDataType_t>(77)), ncclInvalidArgument);
  EXPECT_EQ(call(2, ncclInt32), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  const std::string text = ncclGetLastError(nullptr);
  EXPECT_NE(text.find("AllReduce : invalid type 77 (rank 1 of 3 on host "), std::string::npos) << text;
  for (std::size_t r = 0; r < kRanks; ++r) {
    EXPECT_EQ(data[r].read(), std::vector<int>(100, static_cast<int>(r))) << "nothing has run";
    ncclResult_t state = ncclInternalError;
    EXPECT_EQ(ncclCommGetAsyncError(comms[r], &state), ncclSuccess);
    EXPECT_EQ(state, ncclSuccess);
  }
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (std::size_t r = 0; r < kRanks; ++r) EXPECT_EQ(call(r, ncclInt32), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  for (int r = 0; r < static_cast<int>(kRanks); ++r) {
    EXPECT_TRUE(gpu::waitStream(test::device(r), nullptr, nullptr).ok());
    EXPECT_EQ(data[static_cast<std::size_t>(r)].read(), std::vector<int>(100, 3));
  }
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(WorldGroup, AnErrorDiscardsEverythingAndTheGroupIsUsableAgain) {
  test::expectLog("invalid root 9");
  test::withComm(1, [](test::Member& m) {
    const test::Ints in(m.gpu, 16, 5);
    const test::Ints out(m.gpu, 16, -1);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    ASSERT_EQ(ncclSend(in.at(), 16, ncclInt32, 0, m.comm, m.stream()), ncclSuccess);
    ASSERT_EQ(ncclRecv(out.at(), 16, ncclInt32, 0, m.comm, m.stream()), ncclSuccess);
    EXPECT_EQ(ncclBroadcast(in.at(), out.at(), 16, ncclInt32, 9, m.comm, m.stream()), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    m.sync();
    EXPECT_EQ(out.read(), std::vector<int>(16, -1)) << "discarded";
    ASSERT_EQ(ncclAllReduce(in.at(), out.at(), 16, ncclInt32, ncclSum, m.comm, m.stream()), ncclSuccess);
    m.sync();
    EXPECT_EQ(out.read(), std::vector<int>(16, 5));
  });
}

TEST(WorldMessages, EverybodySendsToEverybodyAndToItself) {
  test::withComm(3, [](test::Member& m) {
    constexpr std::size_t kCount = 5000;
    std::vector<int> values;
    for (int peer = 0; peer < 3; ++peer) values.insert(values.end(), kCount, 10 * m.rank + peer);
    const test::Ints out(m.gpu, values);
    const test::Ints in(m.gpu, 3 * kCount, -1);
    for (int round = 0; round < 2; ++round) {
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      for (int peer = 0; peer < 3; ++peer) {
        const std::size_t at = static_cast<std::size_t>(peer) * kCount;
        ASSERT_EQ(ncclSend(out.at(at), kCount, ncclInt32, peer, m.comm, m.stream()), ncclSuccess);
        ASSERT_EQ(ncclRecv(in.at(at), kCount, ncclInt32, peer, m.comm, m.stream()), ncclSuccess);
      }
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    }
    m.sync();
    std::vector<int> expected;
    for (int peer = 0; peer < 3; ++peer) expected.insert(expected.end(), kCount, 10 * peer + m.rank);
    EXPECT_EQ(in.read(), expected);
  });
}

TEST(WorldMessages, ManyToOnePeerArriveInOrderAmongEmptyOnes) {
  test::withComm(2, [](test::Member& m) {
    constexpr int kMessages = 40;
    constexpr std::size_t kCount = 100;
    const test::Ints out(m.gpu, test::countUp(m.rank * 10'000, kMessages * kCount));
    const test::Ints in(m.gpu, kMessages * kCount, -1);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (std::size_t i = 0; i < kMessages; ++i) {
      const std::size_t count = i % 4 == 3 ? 0 : kCount;
      ASSERT_EQ(ncclSend(out.at(i * kCount), count, ncclInt32, 1 - m.rank, m.comm, m.stream()), ncclSuccess);
      ASSERT_EQ(ncclRecv(in.at(i * kCount), count, ncclInt32, 1 - m.rank, m.comm, m.stream()), ncclSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    m.sync();
    std::vector<int> expected = test::countUp((1 - m.rank) * 10'000, kMessages * kCount);
    for (std::size_t i = 3; i < kMessages; i += 4)
      std::fill_n(expected.begin() + static_cast<long>(i * kCount), kCount, -1);
    EXPECT_EQ(in.read(), expected);
  });
}

TEST(WorldMessages, OneWayMessagesNeedNoAnswer) {
  test::withComm(2, [](test::Member& m) {
    const test::Ints data(m.gpu, 1000, m.rank + 1);
    if (m.rank == 0) {
      ASSERT_EQ(ncclSend(data.at(), 1000, ncclInt32, 1, m.comm, m.stream()), ncclSuccess);
    }
    if (m.rank == 1) {
      ASSERT_EQ(ncclRecv(data.at(), 1000, ncclInt32, 0, m.comm, m.stream()), ncclSuccess);
    }
    m.sync();
    EXPECT_EQ(data.read(), std::vector<int>(1000, 1));
  });
}

TEST(WorldMessages, AMessageToOneselfNeedsItsOtherHalf) {
  test::allowLog("Trying to send to self without a matching recv on rank");
  test::withComm(2, [](test::Member& m) {
    const test::Ints data(m.gpu, 16, 1);
    EXPECT_EQ(ncclSend(data.at(), 16, ncclInt32, m.rank, m.comm, m.stream()), ncclInvalidUsage);
    ncclResult_t state = ncclInternalError;
    EXPECT_EQ(ncclCommGetAsyncError(m.comm, &state), ncclSuccess);
    EXPECT_EQ(state, ncclSuccess) << "a caller's mistake leaves the communicator usable";
  });
}

}  // namespace
}  // namespace tutti::comm
