// Every algorithm and protocol of every collective, forced by NCCL_ALGO and NCCL_PROTO, in a communicator: right
// results from calls and from graphs, an end that waits for everybody, and errors for all when one rank stays away.
#include <atomic>
#include <cstdlib>

#include "comm/graph.h"
#include "comm/world.h"
#include "device/kernels/kernel_name.h"

namespace tutti::comm {
namespace {

using device::Algorithm;
using device::Func;
using device::Protocol;
using test::Ints;
using test::Member;
using test::Recording;
using test::withComm;

constexpr int kRanks = 3;
constexpr int kRoot = 2;

struct Method {
  device::Func func;
  device::Algorithm algorithm;
  device::Protocol protocol;
};

std::string nameOf(const Method& method) {
  return std::string(device::funcName(method.func)) + "_" + device::algorithmName(method.algorithm) + "_" +
         device::protocolName(method.protocol);
}

/// Whether it works on one node, without a network that reduces by itself.
bool needsNoNetwork(device::Algorithm algorithm) {
  return algorithm != device::Algorithm::CollNetDirect && algorithm != device::Algorithm::CollNetChain;
}

std::vector<Method> allMethods() {
  std::vector<Method> methods;
  for (const device::Func func : {device::Func::Broadcast, device::Func::Reduce, device::Func::AllGather,
                                  device::Func::ReduceScatter, device::Func::AllReduce}) {
    for (int a = 0; a < device::kAlgorithms; ++a) {
      for (int p = 0; p < device::kProtocols; ++p) {
        const Method method{func, static_cast<device::Algorithm>(a), static_cast<device::Protocol>(p)};
        if (needsNoNetwork(method.algorithm) && device::methodExists(method.func, method.algorithm, method.protocol)) {
          methods.push_back(method);
        }
      }
    }
  }
  return methods;
}

class WorldMethods : public testing::TestWithParam<Method> {
 protected:
  void SetUp() override {
    // No thread of the test runs yet.
    ::setenv("NCCL_ALGO", device::algorithmName(GetParam().algorithm), 1);  // NOLINT(concurrency-mt-unsafe)
    ::setenv("NCCL_PROTO", device::protocolName(GetParam().protocol), 1);   // NOLINT(concurrency-mt-unsafe)
  }
  void TearDown() override {
    ::unsetenv("NCCL_ALGO");   // NOLINT(concurrency-mt-unsafe)
    ::unsetenv("NCCL_PROTO");  // NOLINT(concurrency-mt-unsafe)
  }

  /// `count` elements a rank, or of the whole vector.
  static ncclResult_t call(const test::Member& m, const test::Ints& in, const test::Ints& out, std::size_t count) {
    switch (GetParam().func) {
      case device::Func::Broadcast:
        return ncclBroadcast(in.at(), out.at(), count, ncclInt32, kRoot, m.comm, m.stream());
      case device::Func::Reduce:
        return ncclReduce(in.at(), out.at(), count, ncclInt32, ncclSum, kRoot, m.comm, m.stream());
      case device::Func::AllGather:
        return ncclAllGather(in.at(), out.at(), count, ncclInt32, m.comm, m.stream());
      case device::Func::ReduceScatter:
        return ncclReduceScatter(in.at(), out.at(), count, ncclInt32, ncclSum, m.comm, m.stream());
      case device::Func::AllReduce:
        return ncclAllReduce(in.at(), out.at(), count, ncclInt32, ncclSum, m.comm, m.stream());
      case device::Func::SendRecv:
        break;
    }
    return ncclInternalError;
  }

  /// What rank r puts in, element by element; a ReduceScatter's has a block for every rank.
  static std::vector<int> input(int rank, std::size_t elements, int salt) {
    return test::countUp(rank * 7 + salt, elements);
  }
  static std::size_t inputSize(std::size_t count) {
    return GetParam().func == device::Func::ReduceScatter ? count * kRanks : count;
  }
  static std::size_t outputSize(std::size_t count) {
    return GetParam().func == device::Func::AllGather ? count * kRanks : count;
  }

  static std::vector<int> sums(std::size_t begin, std::size_t count, int salt) {
    std::vector<int> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = kRanks * (static_cast<int>(begin + i) + salt) + 7 * kRanks * (kRanks - 1) / 2;
    }
    return values;
  }

  static std::vector<int> expected(int rank, std::size_t count, int salt) {
    switch (GetParam().func) {
      case device::Func::Broadcast:
        return input(kRoot, count, salt);
      case device::Func::Reduce:
        return rank == kRoot ? sums(0, count, salt) : std::vector<int>(count, -1);
      case device::Func::ReduceScatter:
        return sums(static_cast<std::size_t>(rank) * count, count, salt);
      case device::Func::AllReduce:
        return sums(0, count, salt);
      case device::Func::AllGather: {
        std::vector<int> all;
        for (int r = 0; r < kRanks; ++r) {
          const std::vector<int> block = input(r, count, salt);
          all.insert(all.end(), block.begin(), block.end());
        }
        return all;
      }
      case device::Func::SendRecv:
        break;
    }
    return {};
  }

  static void runOnce(const test::Member& m, std::size_t count, int salt) {
    const test::Ints in(m.gpu, input(m.rank, inputSize(count), salt));
    const test::Ints out(m.gpu, outputSize(count), -1);
    ASSERT_EQ(call(m, in, out, count), ncclSuccess);
    m.sync();
    EXPECT_EQ(out.read(), expected(m.rank, count, salt)) << count << " elements";
  }
};

TEST_P(WorldMethods, GivesTheRightResultAndEndsWhenAllIsTaken) {
  test::withComm(kRanks, [](test::Member& m) {
    for (const std::size_t count : {1U, 3U, 1000U, 40'001U, 7U}) runOnce(m, count, static_cast<int>(count));
  });
}

TEST_P(WorldMethods, RunsInGraphsWhoseCaptureConnectsIt) {
  test::withComm(kRanks, [](test::Member& m) {
    constexpr std::size_t kCount = 2'001;
    const test::Ints in(m.gpu, input(m.rank, inputSize(kCount), 5));
    const test::Ints out(m.gpu, outputSize(kCount), -1);
    const auto graph = test::Recording::of(m.stream(), [&] { EXPECT_EQ(call(m, in, out, kCount), ncclSuccess); });
    for (int i = 0; i < 20; ++i) graph->launch(m.stream());
    m.sync();
    EXPECT_EQ(out.read(), expected(m.rank, kCount, 5));
    runOnce(m, kCount, 6);
  });
}

TEST_P(WorldMethods, EndsWithAnErrorForAllWhenOneRankStaysAway) {
  test::allowLog("rank 2");
  std::atomic<int> waiting{0};
  test::withComm(kRanks, [&](test::Member& m) {
    runOnce(m, 100, 1);                      // connects
    constexpr std::size_t kCount = 300'000;  // more than fits into the slots
    const test::Ints in(m.gpu, inputSize(kCount), 1);
    const test::Ints out(m.gpu, outputSize(kCount), -1);
    if (m.rank != kRoot) {
      EXPECT_EQ(call(m, in, out, kCount), ncclSuccess);
      ++waiting;
      EXPECT_EQ(test::awaitError(m.comm), ncclRemoteError);
    } else {
      const Deadline deadline = Deadline::in(std::chrono::seconds(20));
      while (waiting.load() < kRanks - 1 && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
      std::this_thread::sleep_for(milliseconds(10));  // their kernels stand in the middle
    }
    EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
    m.comm = nullptr;
    m.sync();
  });
  EXPECT_NE(test::capturedText().find("rank 2"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, WorldMethods, testing::ValuesIn(allMethods()),
                         [](const auto& one) { return nameOf(one.param); });

}  // namespace
}  // namespace tutti::comm
