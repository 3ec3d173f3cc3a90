#include "misuse_calls.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace tutti::adversary {

namespace {

constexpr std::size_t kFew = 16;

ncclUniqueId garbageId(Bench& bench) {
  ncclUniqueId id;
  for (char& byte : id.internal) byte = static_cast<char>(bench.random());
  return id;
}

ncclResult_t initWith(const ncclUniqueId& id, int nRanks, int rank) {
  ncclComm_t comm = nullptr;
  const ncclResult_t result = ncclCommInitRank(&comm, nRanks, id, rank);
  if (result == ncclSuccess) ncclCommAbort(comm);
  return result;
}

ncclResult_t initOf(int nRanks, int rank) {
  ncclUniqueId id;
  if (const ncclResult_t made = ncclGetUniqueId(&id); made != ncclSuccess) return ncclSuccess;
  return initWith(id, nRanks, rank);
}

/// A call inside a group that is closed again; the group says what went wrong.
template <typename Call>
ncclResult_t inGroup(const Call& call) {
  ncclGroupStart();
  const ncclResult_t result = call();
  const ncclResult_t ended = ncclGroupEnd();
  return result != ncclSuccess ? result : ended;
}

std::vector<Misuse> inits() {
  return {
      {"init of absurdly many ranks",
       [](Bench& b) { return initOf(b.random() % 2 == 0 ? std::numeric_limits<int>::max() : 1 << 30, 0); }},
      {"init of no ranks", [](Bench& b) { return initOf(-static_cast<int>(b.random() % 3), 0); }},
      {"init of a rank that is out of range", [](Bench& b) { return initOf(2, b.absurdRank(2)); }},
      {"init with a garbage id", [](Bench& b) { return initWith(garbageId(b), 2, 0); }},
      {"init with an id of zeros", [](Bench&) { return initWith(ncclUniqueId{}, 1, 0); }},
      {"init without a place for the communicator",
       [](Bench&) {
         ncclUniqueId id;
         ncclGetUniqueId(&id);
         return ncclCommInitRank(nullptr, 1, id, 0);
       }},
      {"unique id without a place", [](Bench&) { return ncclGetUniqueId(nullptr); }},
      {"init all without devices", [](Bench&) { return ncclCommInitAll(nullptr, 2, nullptr); }},
      {"init all of devices that are not there",
       [](Bench& b) {
         std::array<ncclComm_t, 2> comms{};
         const std::array<int, 2> devices = {0, 1000 + static_cast<int>(b.random() % 1000)};
         return ncclCommInitAll(comms.data(), 2, devices.data());
       }},
      {"init with a garbage configuration",
       [](Bench& b) {
         ncclUniqueId id;
         ncclGetUniqueId(&id);
         ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
         config.magic = static_cast<unsigned>(b.random());
         ncclComm_t comm = nullptr;
         return ncclCommInitRankConfig(&comm, 1, id, 0, &config);
       }},
  };
}

std::vector<Misuse> counts() {
  return {
      {"AllReduce of an absurd count",
       [](Bench& b) {
         return ncclAllReduce(b.memory, b.memory, b.absurdCount(), ncclFloat, ncclSum, b.comm, b.stream);
       }},
      {"AllGather of an absurd count",
       [](Bench& b) { return ncclAllGather(b.memory, b.memory, b.absurdCount(), ncclFloat, b.comm, b.stream); }},
      {"ReduceScatter of an absurd count",
       [](Bench& b) {
         return ncclReduceScatter(b.memory, b.memory, b.absurdCount(), ncclFloat64, ncclSum, b.comm, b.stream);
       }},
      {"Broadcast of an absurd count",
       [](Bench& b) { return ncclBroadcast(b.memory, b.memory, b.absurdCount(), ncclInt64, 0, b.comm, b.stream); }},
      {"Reduce of an absurd count",
       [](Bench& b) {
         return ncclReduce(b.memory, b.memory, b.absurdCount(), ncclInt32, ncclSum, 0, b.comm, b.stream);
       }},
      {"Send of an absurd count",
       [](Bench& b) {
         return inGroup([&] { return ncclSend(b.memory, b.absurdCount(), ncclFloat, 1, b.comm, b.stream); });
       }},
      {"Recv of an absurd count",
       [](Bench& b) {
         return inGroup([&] { return ncclRecv(b.memory, b.absurdCount(), ncclFloat, 1, b.comm, b.stream); });
       }},
      {"memory of an absurd size",
       [](Bench& b) {
         void* memory = nullptr;
         return ncclMemAlloc(&memory, b.absurdCount());
       }},
  };
}

std::vector<Misuse> arguments() {
  return {
      {"AllReduce of no type",
       [](Bench& b) {
         const auto type = static_cast<ncclDataType_t>(ncclNumTypes + static_cast<int>(b.random() % 1000));
         return ncclAllReduce(b.memory, b.memory, kFew, type, ncclSum, b.comm, b.stream);
       }},
      {"AllReduce by no operator",
       [](Bench& b) {
         const auto op = static_cast<ncclRedOp_t>(ncclNumOps + 1 + static_cast<int>(b.random() % 100000));
         return ncclAllReduce(b.memory, b.memory, kFew, ncclFloat, op, b.comm, b.stream);
       }},
      {"Broadcast from a root that is out of range",
       [](Bench& b) { return ncclBroadcast(b.memory, b.memory, kFew, ncclFloat, b.absurdRank(2), b.comm, b.stream); }},
      {"Reduce to a root that is out of range",
       [](Bench& b) {
         return ncclReduce(b.memory, b.memory, kFew, ncclFloat, ncclSum, b.absurdRank(2), b.comm, b.stream);
       }},
      {"Send to a rank that is out of range",
       [](Bench& b) {
         return inGroup([&] { return ncclSend(b.memory, kFew, ncclFloat, b.absurdRank(2), b.comm, b.stream); });
       }},
      {"AllReduce without buffers",
       [](Bench& b) { return ncclAllReduce(nullptr, nullptr, kFew, ncclFloat, ncclSum, b.comm, b.stream); }},
      {"AllGather without an output",
       [](Bench& b) { return ncclAllGather(b.memory, nullptr, kFew, ncclFloat, b.comm, b.stream); }},
      {"operator without a scalar",
       [](Bench& b) {
         ncclRedOp_t op = ncclSum;
         return ncclRedOpCreatePreMulSum(&op, nullptr, ncclFloat, ncclScalarHostImmediate, b.comm);
       }},
      {"end of an operator that is none",
       [](Bench& b) { return ncclRedOpDestroy(static_cast<ncclRedOp_t>(1000 + b.random() % 1000), b.comm); }},
  };
}

std::vector<Misuse> handles() {
  return {
      {"AllReduce without a communicator",
       [](Bench& b) { return ncclAllReduce(b.memory, b.memory, kFew, ncclFloat, ncclSum, nullptr, b.stream); }},
      {"count without a communicator",
       [](Bench&) {
         int count = 0;
         return ncclCommCount(nullptr, &count);
       }},
      {"count without a place", [](Bench& b) { return ncclCommCount(b.comm, nullptr); }},
      {"state without a place", [](Bench& b) { return ncclCommGetAsyncError(b.comm, nullptr); }},
      {"destroy of no communicator", [](Bench&) { return ncclCommDestroy(nullptr); }, false},
      {"abort of no communicator", [](Bench&) { return ncclCommAbort(nullptr); }, false},
      {"finalize of no communicator", [](Bench&) { return ncclCommFinalize(nullptr); }, false},
      {"end of a group that was not begun", [](Bench&) { return ncclGroupEnd(); }},
      {"free of memory that is none", [](Bench& b) { return ncclMemFree(reinterpret_cast<void*>(b.random() | 1)); }},
      {"an error in a group does not stay",
       [](Bench& b) {
         return inGroup([&] { return ncclAllReduce(b.memory, b.memory, kFew, ncclFloat, ncclSum, nullptr, b.stream); });
       }},
  };
}

}  // namespace

std::size_t Bench::absurdCount() {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  const std::array<std::size_t, 6> counts = {
      kMost, kMost / 2, kMost / 4 + 1, kMost / 8 + 1, std::size_t{1} << 62, std::size_t{1} << 61};
  return counts[random() % counts.size()];
}

int Bench::absurdRank(int bound) {
  const std::array<int, 5> ranks = {bound, -1, std::numeric_limits<int>::max(), std::numeric_limits<int>::min(),
                                    bound + static_cast<int>(random() % 100000)};
  return ranks[random() % ranks.size()];
}

const std::vector<Misuse>& misuses() {
  static const std::vector<Misuse> all = [] {
    std::vector<Misuse> found;
    for (const auto& some : {inits(), counts(), arguments(), handles()})
      found.insert(found.end(), some.begin(), some.end());
    return found;
  }();
  return all;
}

}  // namespace tutti::adversary
