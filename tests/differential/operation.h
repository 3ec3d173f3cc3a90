// What a random run consists of, as plain values: operations in groups, groups in rounds, and what the memory of every
// rank must hold before and after a round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nccl.h"

namespace differential {

enum class Func { AllReduce, Reduce, ReduceScatter, AllGather, Broadcast, AlltoAll, Gather, Scatter, Messages };
inline constexpr int kFuncs = 9;

const char* funcName(Func func);
bool isReduction(Func func);

/// Stands for an operator of ncclRedOpCreatePreMulSum.
inline constexpr ncclRedOp_t kPreMulSum = ncclNumOps;

/// Bytes in the arena of a rank: the one allocation in which all of its buffers lie.
struct Span {
  std::size_t offset = 0;
  std::size_t bytes = 0;
  bool holds(std::size_t place) const { return place >= offset && place < offset + bytes; }
};

/// One send with its receive; ranks of the communicator.
struct Message {
  int from;
  int to;
  Span source;
  Span target;
};

/// One call on every rank of a communicator; Messages: any number of sends and receives.
struct Operation {
  std::size_t number = 0;  ///< from 0, over the whole run
  Func func = Func::AllReduce;
  int comm = 0;
  int stream = 0;
  ncclDataType_t type = ncclInt8;
  ncclRedOp_t op = ncclSum;
  std::size_t count = 0;
  int root = 0;
  bool receivesFirst = false;     ///< Messages: a rank calls its receives before its sends
  bool scalarOnDevice = false;    ///< kPreMulSum
  std::vector<Span> send;         ///< by rank of the communicator; all that the call may read
  std::vector<Span> recv;         ///< all that the call may write; empty spans still have a place
  std::vector<Span> scalar;       ///< kPreMulSum: the rank's factor, one element
  std::vector<Message> messages;  ///< by Messages alone
};

/// "operation 17: AllReduce int32 sum, 1021 elements, communicator 1, stream 0".
std::string describe(const Operation& operation);

struct Group {
  std::vector<Operation> operations;
  bool bare = false;    ///< a single call, without ncclGroupStart
  bool nested = false;  ///< a group in a group
  bool byRank = false;  ///< a thread of several ranks makes all calls of one rank, then those of the next
};

/// Averages of floats by a number that is no power of two: right within a tolerance.
struct Inexact {
  int rank;  ///< of all ranks
  Span span;
  ncclDataType_t type;
  int ranks;  ///< of the communicator
  std::vector<double> want;
};

enum class Capture { None, Global, ThreadLocal, Relaxed };

/// What is done between two looks at the memory.
struct Round {
  std::size_t number = 0;
  std::vector<Group> groups;
  Capture capture = Capture::None;
  std::vector<std::vector<std::uint8_t>> before;  ///< by rank: the arena's first bytes
  std::vector<std::vector<std::uint8_t>> after;
  std::vector<Inexact> inexact;
  std::size_t operations() const;
};

/// Who takes part in what; the same in all processes.
struct Layout {
  int ranks = 1;
  int streams = 1;
  std::vector<std::vector<int>> comms;  ///< ranks of each communicator; the first has all, in order
  std::vector<bool> blocking;           ///< by communicator
  /// The rank's number in communicator `comm`, or -1.
  int rankIn(int comm, int rank) const;
};

}  // namespace differential
