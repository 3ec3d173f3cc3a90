#include "bench/collective.h"

namespace bench {
namespace {

std::size_t whole(std::size_t elements, int) {
  return elements;
}
std::size_t share(std::size_t elements, int ranks) {
  return elements / static_cast<std::size_t>(ranks);
}
std::size_t once(std::size_t count, int) {
  return count;
}
std::size_t timesRanks(std::size_t count, int ranks) {
  return count * static_cast<std::size_t>(ranks);
}
std::size_t atStart(std::size_t, int) {
  return 0;
}
std::size_t atBlock(std::size_t count, int rank) {
  return count * static_cast<std::size_t>(rank);
}
double one(int) {
  return 1.0;
}
double othersShare(int ranks) {
  return static_cast<double>(ranks - 1) / ranks;
}
double bothWays(int ranks) {
  return 2.0 * (ranks - 1) / ranks;
}

ncclResult_t runSendRecv(const Call& c) {
  const int next = (c.rank + 1) % c.ranks;
  const int previous = (c.rank + c.ranks - 1) % c.ranks;
  ncclResult_t result = ncclGroupStart();
  if (result == ncclSuccess) result = ncclSend(c.send, c.count, c.type, next, c.comm, c.stream);
  if (result == ncclSuccess) result = ncclRecv(c.recv, c.count, c.type, previous, c.comm, c.stream);
  const ncclResult_t ended = ncclGroupEnd();
  return result == ncclSuccess ? ended : result;
}

}  // namespace

const Collective kAllReduce{
    "all_reduce_perf",
    true,
    false,
    true,
    whole,
    once,
    once,
    atStart,
    atStart,
    [](const Call& c) { return ncclAllReduce(c.send, c.recv, c.count, c.type, c.op, c.comm, c.stream); },
    bothWays,
    [](const Call&, std::size_t) {
      return Collective::Origin{kReduced, 0};
    }};

const Collective kAllGather{
    "all_gather_perf",
    false,
    false,
    true,
    share,
    once,
    timesRanks,
    atBlock,
    atStart,
    [](const Call& c) { return ncclAllGather(c.send, c.recv, c.count, c.type, c.comm, c.stream); },
    othersShare,
    [](const Call&, std::size_t block) {
      return Collective::Origin{static_cast<int>(block), 0};
    }};

const Collective kReduceScatter{
    "reduce_scatter_perf",
    true,
    false,
    true,
    share,
    timesRanks,
    once,
    atStart,
    atBlock,
    [](const Call& c) { return ncclReduceScatter(c.send, c.recv, c.count, c.type, c.op, c.comm, c.stream); },
    othersShare,
    [](const Call& c, std::size_t) {
      return Collective::Origin{kReduced, c.count * static_cast<std::size_t>(c.rank)};
    }};

const Collective kBroadcast{
    "broadcast_perf",
    false,
    true,
    true,
    whole,
    once,
    once,
    atStart,
    atStart,
    [](const Call& c) { return ncclBroadcast(c.send, c.recv, c.count, c.type, c.root, c.comm, c.stream); },
    one,
    [](const Call& c, std::size_t) {
      return Collective::Origin{c.root, 0};
    }};

const Collective kReduce{
    "reduce_perf",
    true,
    true,
    true,
    whole,
    once,
    once,
    atStart,
    atStart,
    [](const Call& c) { return ncclReduce(c.send, c.recv, c.count, c.type, c.op, c.root, c.comm, c.stream); },
    one,
    [](const Call& c, std::size_t) {
      return Collective::Origin{c.rank == c.root ? kReduced : kUntouched, 0};
    }};

const Collective kAlltoAll{
    "alltoall_perf",
    false,
    false,
    false,
    share,
    timesRanks,
    timesRanks,
    atStart,
    atStart,
    [](const Call& c) { return ncclAlltoAll(c.send, c.recv, c.count, c.type, c.comm, c.stream); },
    othersShare,
    [](const Call& c, std::size_t block) {
      return Collective::Origin{static_cast<int>(block), c.count * static_cast<std::size_t>(c.rank)};
    }};

const Collective kGather{
    "gather_perf",
    false,
    true,
    true,
    share,
    once,
    timesRanks,
    atBlock,
    atStart,
    [](const Call& c) { return ncclGather(c.send, c.recv, c.count, c.type, c.root, c.comm, c.stream); },
    othersShare,
    [](const Call& c, std::size_t block) {
      return Collective::Origin{c.rank == c.root ? static_cast<int>(block) : kUntouched, 0};
    }};

const Collective kScatter{
    "scatter_perf",
    false,
    true,
    true,
    share,
    timesRanks,
    once,
    atStart,
    atBlock,
    [](const Call& c) { return ncclScatter(c.send, c.recv, c.count, c.type, c.root, c.comm, c.stream); },
    othersShare,
    [](const Call& c, std::size_t) {
      return Collective::Origin{c.root, c.count * static_cast<std::size_t>(c.rank)};
    }};

const Collective kSendRecv{"sendrecv_perf",
                           false,
                           false,
                           false,
                           whole,
                           once,
                           once,
                           atStart,
                           atStart,
                           runSendRecv,
                           one,
                           [](const Call& c, std::size_t) {
                             return Collective::Origin{(c.rank + c.ranks - 1) % c.ranks, 0};
                           }};

}  // namespace bench
