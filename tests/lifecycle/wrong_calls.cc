// Calls that the API refuses, and the code with which it does; what they are made on is as well afterwards as before.
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lifecycle/library_features.h"
#include "lifecycle/player.h"

namespace lifecycle {

namespace {

/// What a wrong call is made on.
struct Scene {
  ncclComm_t comm;
  ncclComm_t other;  ///< blocks if `comm` does not, and the other way round; null where there is none
  int rank;
  int size;
  float* memory;
  cudaStream_t stream;
};

struct WrongCall {
  const char* name;
  State state;  ///< of the communicator
  std::uint32_t feature;
  ncclResult_t answer;
  std::function<ncclResult_t(const Scene&)> make;
};

ncclResult_t reduce(const Scene& s, ncclComm_t comm, int type = ncclFloat, int op = ncclSum) {
  return ncclAllReduce(s.memory, s.memory, 1, static_cast<ncclDataType_t>(type), static_cast<ncclRedOp_t>(op), comm,
                       s.stream);
}

ncclResult_t shrink(const Scene& s, std::vector<int> list, int count, ncclComm_t* child) {
  return ncclCommShrink(s.comm, list.empty() ? nullptr : list.data(), count, child, nullptr, NCCL_SHRINK_DEFAULT);
}

/// A group with one wrong call does nothing, and its end repeats the code.
ncclResult_t inGroup(const std::function<ncclResult_t()>& calls) {
  ncclResult_t result = ncclGroupStart();
  if (result == ncclSuccess) result = calls();
  const ncclResult_t ended = ncclGroupEnd();
  return ended == result ? result : ncclInternalError;
}

int someoneElse(const Scene& s) {
  return (s.rank + 1) % s.size;
}

ncclResult_t splitWithoutMagic(const Scene& s) {
  ncclComm_t child = nullptr;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.magic = 0;
  return ncclCommSplit(s.comm, 0, 0, &child, &config);
}

ncclResult_t initOutOfRange(const Scene&) {
  ncclUniqueId id{};
  ncclComm_t comm = nullptr;
  const ncclResult_t result = ncclCommInitRank(&comm, 2, id, 2);
  return comm == nullptr ? result : ncclInternalError;
}

constexpr State kAlive = State::Alive;
constexpr ncclResult_t kArgument = ncclInvalidArgument;
constexpr ncclResult_t kUsage = ncclInvalidUsage;
using S = const Scene&;

/// Also groups and questions.
std::vector<WrongCall> wrongOperations() {
  return {
      {"unknown type", kAlive, 0, kArgument, [](S s) { return reduce(s, s.comm, 99); }},
      {"unknown operator", kAlive, 0, kArgument, [](S s) { return reduce(s, s.comm, ncclFloat, -1); }},
      {"no communicator", kAlive, 0, kArgument, [](S s) { return reduce(s, nullptr); }},
      {"root out of range", kAlive, 0, kArgument,
       [](S s) { return ncclBroadcast(s.memory, s.memory, 1, ncclFloat, s.size, s.comm, s.stream); }},
      {"peer out of range", kAlive, 0, kArgument,
       [](S s) { return ncclSend(s.memory, 1, ncclFloat, -1, s.comm, s.stream); }},
      {"no place for a state", kAlive, 0, kArgument, [](S s) { return ncclCommGetAsyncError(s.comm, nullptr); }},
      {"no place for a size", kAlive, 0, kArgument, [](S s) { return ncclCommCount(s.comm, nullptr); }},
      {"a group ends that was not begun", kAlive, 0, kUsage, [](S) { return ncclGroupEnd(); }},
      {"wrong call in a group", kAlive, 0, kArgument,
       [](S s) { return inGroup([&] { return reduce(s, s.comm), reduce(s, s.comm, 99); }); }},
  };
}

/// Init and split.
std::vector<WrongCall> wrongBirths() {
  return {
      {"init out of range", kAlive, 0, kArgument, initOutOfRange},
      {"init without a place", kAlive, 0, kArgument, [](S) { return ncclCommInitRank(nullptr, 1, ncclUniqueId{}, 0); }},
      {"split without a place", kAlive, kSplit, kArgument,
       [](S s) { return ncclCommSplit(s.comm, 0, 0, nullptr, nullptr); }},
      {"split of nothing", kAlive, kSplit, kArgument,
       [](S) {
         ncclComm_t child = nullptr;
         return ncclCommSplit(nullptr, 0, 0, &child, nullptr);
       }},
      {"split with a configuration without magic", kAlive, kSplit, kArgument, splitWithoutMagic},
  };
}

/// Nobody is excluded who is not there, and nobody twice.
std::vector<WrongCall> wrongShrinks() {
  return {
      {"shrink without a list", kAlive, kShrink, kArgument,
       [](S s) {
         ncclComm_t child = nullptr;
         return shrink(s, {}, 1, &child);
       }},
      {"shrink by nobody", kAlive, kShrink, kArgument,
       [](S s) {
         ncclComm_t child = nullptr;
         return shrink(s, {someoneElse(s)}, 0, &child);
       }},
      {"shrink by oneself", kAlive, kShrink, kArgument,
       [](S s) {
         ncclComm_t child = nullptr;
         return shrink(s, {s.rank}, 1, &child);
       }},
      {"shrink by a rank that is not there", kAlive, kShrink, kArgument,
       [](S s) {
         ncclComm_t child = nullptr;
         return shrink(s, {s.size}, 1, &child);
       }},
      {"shrink by a negative rank", kAlive, kShrink, kArgument,
       [](S s) {
         ncclComm_t child = nullptr;
         return shrink(s, {-1}, 1, &child);
       }},
      {"shrink twice by one rank", kAlive, kShrink, kArgument,
       [](S s) {
         ncclComm_t child = nullptr;
         return shrink(s, {someoneElse(s), someoneElse(s)}, 2, &child);
       }},
      {"shrink without a place", kAlive, kShrink, kArgument,
       [](S s) { return shrink(s, {someoneElse(s)}, 1, nullptr); }},
  };
}

/// By members and by those who want to be.
std::vector<WrongCall> wrongGrowths() {
  return {
      {"grow without a place", kAlive, kGrow, kArgument,
       [](S s) { return ncclCommGrow(s.comm, s.size + 1, nullptr, -1, nullptr, nullptr); }},
      {"grow by nobody", kAlive, kGrow, kArgument,
       [](S s) {
         ncclComm_t child = nullptr;
         return ncclCommGrow(s.comm, s.size, nullptr, -1, &child, nullptr);
       }},
      {"grow with another rank", kAlive, kGrow, kArgument,
       [](S s) {
         ncclComm_t child = nullptr;
         return ncclCommGrow(s.comm, s.size + 1, nullptr, s.rank, &child, nullptr);
       }},
      {"grow without an id", kAlive, kGrow, kArgument,
       [](S s) {
         ncclComm_t child = nullptr;
         return ncclCommGrow(nullptr, s.size + 1, nullptr, s.size, &child, nullptr);
       }},
      {"id to grow without a place", kAlive, kGrow, kArgument,
       [](S s) { return ncclCommGetUniqueId(s.comm, nullptr); }},
  };
}

/// Revoke, suspend and statistics.
std::vector<WrongCall> wrongPauses() {
  return {
      {"revoke with flags", kAlive, kRevoke, kArgument, [](S s) { return ncclCommRevoke(s.comm, 1); }},
      {"suspend what nobody knows", kAlive, kSuspend, kArgument, [](S s) { return ncclCommSuspend(s.comm, 2); }},
      {"resume what is awake", kAlive, kSuspend, kUsage, [](S s) { return ncclCommResume(s.comm); }},
      {"unknown statistic", kAlive, kMemStats, kArgument,
       [](S s) {
         std::uint64_t bytes = 0;
         return ncclCommMemStats(s.comm, static_cast<ncclCommMemStat_t>(17), &bytes);
       }},
      {"no place for a statistic", kAlive, kMemStats, kArgument,
       [](S s) { return ncclCommMemStats(s.comm, ncclStatGpuMemTotal, nullptr); }},
  };
}

/// What is no longer possible, or not now.
std::vector<WrongCall> lateCalls() {
  return {
      {"finalize again", State::Finalized, 0, kArgument, [](S s) { return ncclCommFinalize(s.comm); }},
      {"revoke what was finalized", State::Finalized, kRevoke, kArgument,
       [](S s) { return ncclCommRevoke(s.comm, NCCL_REVOKE_DEFAULT); }},
      {"reduce what was revoked", State::Revoked, 0, kUsage, [](S s) { return reduce(s, s.comm); }},
      {"send what was revoked", State::Revoked, 0, kUsage,
       [](S s) { return ncclSend(s.memory, 1, ncclFloat, someoneElse(s), s.comm, s.stream); }},
      {"finalize what was revoked", State::Revoked, 0, kArgument, [](S s) { return ncclCommFinalize(s.comm); }},
      {"revoke again", State::Revoked, 0, kArgument, [](S s) { return ncclCommRevoke(s.comm, NCCL_REVOKE_DEFAULT); }},
      {"reduce what is suspended", State::Suspended, 0, kUsage, [](S s) { return reduce(s, s.comm); }},
      {"suspend again", State::Suspended, 0, kUsage, [](S s) { return ncclCommSuspend(s.comm, NCCL_SUSPEND_MEM); }},
  };
}

const std::vector<WrongCall>& wrongCalls() {
  static const std::vector<WrongCall> calls = [] {
    std::vector<WrongCall> all;
    for (const auto& some :
         {wrongOperations(), wrongBirths(), wrongShrinks(), wrongGrowths(), wrongPauses(), lateCalls()})
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }();
  return calls;
}

/// Operations on communicators of both kinds do not fit into one group. Made with `other` given.
ncclResult_t mixBlocking(const Scene& s) {
  return inGroup([&] {
    const ncclResult_t first = reduce(s, s.comm);
    return first == ncclSuccess || first == ncclInProgress ? reduce(s, s.other) : first;
  });
}

}  // namespace

void Player::makeWrongCall(const Deed& deed) {
  const Comm& comm = deed.comm;
  Slot& slot = freeSlot();
  Op op;
  if (!slot.prepare(op, comm.id, comm.rankOf(rank_), comm.size())) complain("CUDA fails");
  slot.forget();
  const Scene scene = {seat_.find(comm.id), deed.other >= 0 ? seat_.find(deed.other) : nullptr,
                       comm.rankOf(rank_),  comm.size(),
                       slot.memory(),       slot.stream()};
  std::vector<WrongCall> fitting;
  for (const WrongCall& one : wrongCalls()) {
    const bool there = one.feature == 0 || (limits_.features & one.feature) != 0;
    if (one.state == comm.state && there) fitting.push_back(one);
  }
  if (scene.other != nullptr)
    fitting.push_back({"blocking and not in one group", State::Alive, 0, ncclInvalidArgument, mixBlocking});
  if (deed.related && comm.state == State::Alive && (limits_.features & kSuspend) != 0 && deed.which % 2 == 0)
    fitting.assign(1, {"suspend with relatives", State::Alive, kSuspend, ncclInvalidUsage,
                       [](const Scene& s) { return ncclCommSuspend(s.comm, NCCL_SUSPEND_MEM); }});
  const WrongCall& one = fitting[static_cast<std::size_t>(deed.which) % fitting.size()];
  now(std::string("makes a wrong call: ") + one.name);
  expect(one.make(scene), one.answer, one.name);
  expect(settled(comm.id, one.name), ncclSuccess, std::string("the state after the wrong call \"") + one.name + "\"");
}

}  // namespace lifecycle
