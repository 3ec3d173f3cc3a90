// Ranks whose calls do not match: an error that names two ranks and both calls, with TUTTI_CHECK_CALLS before anything
// runs. Every difference and every collective is here; tests/e2e/mismatch.py has all their combinations.
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "comm/diagnosis/call_log.h"
#include "comm/world.h"

namespace tutti::comm {
namespace {

using test::Ints;
using test::Member;

constexpr std::size_t kCount = 4096;
constexpr std::size_t kRoom = 4 * kCount;

enum class Func { AllReduce, Reduce, Broadcast, AllGather, ReduceScatter };
enum class Difference { Count, Type, Operator, Root, Kind, Order, Missing };

const char* nameOf(Func func) {
  constexpr const char* kNames[] = {"AllReduce", "Reduce", "Broadcast", "AllGather", "ReduceScatter"};
  return kNames[static_cast<int>(func)];
}
const char* nameOf(Difference difference) {
  constexpr const char* kNames[] = {"Count", "Type", "Operator", "Root", "Kind", "Order", "Missing"};
  return kNames[static_cast<int>(difference)];
}

struct Made {
  Func func = Func::AllReduce;
  std::size_t count = kCount;
  ncclDataType_t type = ncclFloat32;  // with kernels that every build has
  ncclRedOp_t op = ncclSum;
  int root = 0;
};

ncclResult_t make(const Member& m, const Ints& in, const Ints& out, const Made& call) {
  switch (call.func) {
    case Func::AllReduce:
      return ncclAllReduce(in.at(), out.at(), call.count, call.type, call.op, m.comm, m.stream());
    case Func::Reduce:
      return ncclReduce(in.at(), out.at(), call.count, call.type, call.op, call.root, m.comm, m.stream());
    case Func::Broadcast:
      return ncclBroadcast(in.at(), out.at(), call.count, call.type, call.root, m.comm, m.stream());
    case Func::AllGather:
      return ncclAllGather(in.at(), out.at(), call.count, call.type, m.comm, m.stream());
    case Func::ReduceScatter:
      return ncclReduceScatter(in.at(), out.at(), call.count, call.type, call.op, m.comm, m.stream());
  }
  return ncclInternalError;
}

bool reduces(Func func) {
  return func != Func::Broadcast && func != Func::AllGather;
}

std::string textOf(const Made& call) {
  std::string text = std::string(nameOf(call.func)) + " of " + std::to_string(call.count) +
                     (call.type == ncclFloat32 ? " ncclFloat32"
                      : call.type == ncclInt32 ? " ncclInt32"
                                               : " ncclInt8");
  if (reduces(call.func)) text += call.op == ncclSum ? ", sum" : ", max";
  if (call.func == Func::Reduce || call.func == Func::Broadcast) text += ", root " + std::to_string(call.root);
  return text;
}

bool applies(Func func, Difference difference) {
  if (difference == Difference::Operator) return reduces(func);
  if (difference == Difference::Root) return func == Func::Reduce || func == Func::Broadcast;
  return true;
}

/// What the ranks call second, and what the last of them calls.
std::pair<Made, Made> callsOf(Func func, Difference difference) {
  Made right{.func = func};
  Made wrong = right;
  switch (difference) {
    case Difference::Count:
      wrong.count = kCount / 2;
      break;
    case Difference::Type:
      wrong.type = reduces(func) ? ncclInt32 : ncclInt8;
      break;
    case Difference::Operator:
      wrong.op = ncclMax;
      break;
    case Difference::Root:
      wrong.root = 1;
      break;
    case Difference::Kind:
      wrong.func = func == Func::Broadcast ? Func::AllReduce : Func::Broadcast;
      break;
    case Difference::Order:
    case Difference::Missing:
      wrong.func = func == Func::AllReduce ? Func::AllGather : Func::AllReduce;
      break;
  }
  return {right, wrong};
}

void set(const char* name, const char* value) {
  ::setenv(name, value, 1);
}

/// Each collective has two differences, and each difference two collectives or more.
bool inPart(Func func, Difference difference, int ranks) {
  return (static_cast<int>(func) + static_cast<int>(difference) + ranks / 2) % 3 == 0;
}

void expectNamed(const std::string& text, int last, const Made& right, const Made& wrong) {
  EXPECT_NE(text.find("The calls of two ranks do not match"), std::string::npos) << text;
  EXPECT_NE(text.find("rank " + std::to_string(last) + " (host "), std::string::npos) << text;
  EXPECT_NE(text.find(textOf(right)), std::string::npos) << text;
  EXPECT_NE(text.find(textOf(wrong)), std::string::npos) << text;
  EXPECT_NE(text.find("2nd"), std::string::npos) << text;
}

/// A call that all make, then one that the last rank makes differently.
void mismatched(int ranks, Func func, Difference difference, bool checked) {
  const int last = ranks - 1;
  const auto [right, wrong] = callsOf(func, difference);
  test::withComm(ranks, [&, right = right, wrong = wrong](Member& m) {
    const Ints in(m.gpu, kRoom, m.rank);
    const Ints out(m.gpu, kRoom, 0);
    ASSERT_EQ(make(m, in, out, {}), ncclSuccess);
    const bool odd = m.rank == last;
    ncclResult_t result = make(m, in, out, odd ? wrong : right);
    std::string text;
    if (checked) {
      EXPECT_EQ(result, ncclInvalidUsage);
      text = ncclGetLastError(m.comm);
      // Refused by all alike: it goes on.
      ASSERT_EQ(make(m, in, out, {.op = ncclMax}), ncclSuccess);
      m.sync();
      EXPECT_EQ(out.read().front(), ranks - 1);
    } else {
      if (difference == Difference::Order && result == ncclSuccess) result = make(m, in, out, odd ? right : wrong);
      if (difference == Difference::Missing && !odd && result == ncclSuccess) result = make(m, in, out, wrong);
      EXPECT_EQ(test::awaitError(m.comm), ncclInvalidUsage);
      text = ncclGetLastError(m.comm);
      EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
      m.comm = nullptr;
    }
    expectNamed(text, last, right, wrong);
  });
}

void all(int ranks, bool checked) {
  set("TUTTI_STALL_SEC", "20");
  set("TUTTI_CHECK_CALLS", checked ? "1" : "0");
  test::allowLog("");
  for (int f = 0; f < 5; ++f) {
    for (int d = 0; d < 7; ++d) {
      const auto func = static_cast<Func>(f);
      const auto difference = static_cast<Difference>(d);
      if (!applies(func, difference) || !inPart(func, difference, ranks)) continue;
      SCOPED_TRACE(std::string(nameOf(func)) + " " + nameOf(difference));
      mismatched(ranks, func, difference, checked);
    }
  }
}

TEST(WorldCalls, ThatDifferAreNamedBetweenTwoRanks) {
  all(2, false);
}

TEST(WorldCalls, ThatDifferAreRefusedByFourRanksThatCheck) {
  all(4, true);
}

/// Nobody is held up by it, however many calls follow at once.
TEST(WorldCalls, ACallLongAgoIsFoundAsLongAsItIsKept) {
  set("TUTTI_CHECK_CALLS", "0");
  test::allowLog("");
  test::withComm(2, [](Member& m) {
    const Ints data(m.gpu, 16, m.rank);
    for (int i = 1; i <= 400; ++i) {
      const ncclRedOp_t op = i == 7 && m.rank == 1 ? ncclMin : ncclMax;
      const ncclResult_t result = ncclAllReduce(data.at(), data.at(), 16, ncclFloat32, op, m.comm, m.stream());
      if (result != ncclSuccess) break;
    }
    EXPECT_EQ(test::awaitError(m.comm), ncclInvalidUsage);
    const std::string text = ncclGetLastError(m.comm);
    EXPECT_NE(text.find("is in its 7th collective of this communicator, AllReduce of 16 ncclFloat32, m"),
              std::string::npos)
        << text;
    EXPECT_EQ(ncclCommAbort(m.comm), ncclSuccess);
    m.comm = nullptr;
  });
}

/// What only moves bytes may be of another type, operators of an application have a handle on each rank, and a call
/// without elements is none.
TEST(WorldCalls, ThatMayDifferDoNotCount) {
  test::withComm(2, [](Member& m) {
    const Ints data(m.gpu, kRoom, 1);
    ASSERT_EQ(ncclBroadcast(data.at(), data.at(), m.rank == 0 ? 64 : 256, m.rank == 0 ? ncclInt32 : ncclInt8, 0, m.comm,
                            m.stream()),
              ncclSuccess);
    ncclRedOp_t unused{};
    ncclRedOp_t op{};
    float two = 2;
    if (m.rank == 1) {
      ASSERT_EQ(ncclRedOpCreatePreMulSum(&unused, &two, ncclFloat32, ncclScalarHostImmediate, m.comm), ncclSuccess);
    }
    ASSERT_EQ(ncclRedOpCreatePreMulSum(&op, &two, ncclFloat32, ncclScalarHostImmediate, m.comm), ncclSuccess);
    // Does nothing, and may be left out.
    if (m.rank == 1) {
      ASSERT_EQ(ncclReduce(data.at(), data.at(), 0, ncclInt8, ncclMax, 1, m.comm, m.stream()), ncclSuccess);
    }
    ASSERT_EQ(ncclAllReduce(data.at(), data.at(), 64, ncclFloat32, op, m.comm, m.stream()), ncclSuccess);
    m.sync();
    EXPECT_EQ(data.read().front(), 4);  // the bits of a float so small are a number of steps
    EXPECT_EQ(ncclCommFinalize(m.comm), ncclSuccess);
  });
}

/// The others are more calls ahead of it than anybody keeps; words go about all the while.
TEST(WorldCalls, OfARankThatIsSlowAreNeverTakenForOthers) {
  constexpr int kCalls = 3000;
  static_assert(kCalls / 2 > static_cast<int>(CallLog::kKept));
  for (const int slow : {0, 1}) {
    test::withComm(2, [slow](Member& m) {
      const Ints data(m.gpu, 16, 0);
      for (int i = 0; i < kCalls; i += 2) {
        if (m.rank == slow && i == kCalls / 2) std::this_thread::sleep_for(std::chrono::milliseconds(1300));
        const auto count = static_cast<std::size_t>(1 + i % 7);
        ASSERT_EQ(ncclGroupStart(), ncclSuccess);
        ASSERT_EQ(ncclAllReduce(data.at(), data.at(), count, ncclFloat32, ncclMax, m.comm, m.stream()), ncclSuccess);
        ASSERT_EQ(ncclBroadcast(data.at(), data.at(), count, ncclInt32, i % 2, m.comm, m.stream()), ncclSuccess);
        ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
      }
      EXPECT_EQ(ncclCommFinalize(m.comm), ncclSuccess) << ncclGetLastError(m.comm);
    });
  }
}

}  // namespace
}  // namespace tutti::comm
