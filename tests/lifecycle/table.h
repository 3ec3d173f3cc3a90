// The table of life-cycle functions: what each answers in each situation, as the API has it.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "nccl.h"

namespace lifecycle {

enum class Function {
  Init,
  Split,
  Shrink,
  ShrinkAbort,
  GetUniqueId,
  Grow,
  Revoke,
  Suspend,
  Resume,
  MemStats,
  Register,
  Deregister,
  AllReduce,
  GetAsyncError,
  Finalize,
  Destroy,
  Abort,
};
inline constexpr int kFunctions = static_cast<int>(Function::Abort) + 1;

enum class Situation { Idle, LiveGraph, Outstanding, DeadPeer, DeadPeerWork };
inline constexpr int kSituations = 5;
constexpr bool someoneDies(Situation situation) {
  return situation == Situation::DeadPeer || situation == Situation::DeadPeerWork;
}

enum class Transport { P2p, Shm, Tcp };
inline constexpr int kTransports = 3;

/// One entry of the table.
struct Expected {
  std::vector<ncclResult_t> answers;  ///< any of them; empty: not defined, and not tried
  const char* words;                  ///< for the reader, beside the code
};

/// What a call on a communicator, or the work that it begins, ends with in a situation. A communicator that does not
/// block answers the same by its state.
const Expected& expected(Function function, Situation situation);

const char* nameOf(Function function);
const char* nameOf(Situation situation);
const char* nameOf(Transport transport);

/// The codes of an entry, such as "0 or 6"; "" where it is not defined.
std::string codesOf(const Expected& one);

/// The whole table for programs: a line per entry with function, situation, codes and words, between tabs.
std::string listing();

struct Cell {
  Function function;
  Situation situation;
  bool blocking;
  bool processes;
  Transport transport;
};

std::string describe(const Cell& cell);

}  // namespace lifecycle
