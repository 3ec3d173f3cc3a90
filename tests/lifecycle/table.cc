#include "lifecycle/table.h"

#include <algorithm>

namespace lifecycle {

namespace {

constexpr ncclResult_t kOk = ncclSuccess;
constexpr ncclResult_t kRemote = ncclRemoteError;

using Row = std::array<Expected, kSituations>;

const std::array<Row, kFunctions>& rows() {
  static const std::array<Row, kFunctions> table = {{
      // Init
      {{{{kOk}, "a communicator beside the others"},
        {{kOk}, "the same"},
        {{kOk}, "the same; the work goes on"},
        {{kOk}, "among those who live"}}},
      // Split
      {{{{kOk}, "children; the parent stays as it is"},
        {{kOk}, "the same; the graph is of the parent"},
        {{kOk}, "the same; the work goes on"},
        {{kRemote}, "all ranks must call it, and one cannot"}}},
      // Shrink, default
      {{{{kOk}, "a child without the excluded; the parent stays as it is"},
        {{kOk}, "the same; the graph is of the parent"},
        {{}, "the parent must be at rest"},
        {{kOk, kRemote}, "its error if the parent has failed: use the flag abort"}}},
      // Shrink, abort
      {{{{kOk}, "a child without the excluded; the parent can only be aborted"},
        {{kOk}, "the same; the graph must not be replayed"},
        {{kOk}, "the same; the work is given up"},
        {{kOk}, "the same, without the dead"}}},
      // Grow
      {{{{kOk}, "a larger communicator; the parent stays as it is"},
        {{kOk}, "the same; the graph is of the parent"},
        {{kOk}, "the same; the work goes on"},
        {{kRemote}, "all members must call it, and one cannot"}}},
      // Revoke
      {{{{kOk}, "operations are refused from now on; split, shrink, destroy and abort are not"},
        {{kOk}, "the same; the graph must not be replayed"},
        {{kOk}, "the same; the work is given up"},
        {{kOk}, "the same; then shrink without the dead"}}},
      // Suspend
      {{{{kOk}, "memory is given back; operations are refused until Resume"},
        {{kOk}, "the same; the graph must not be replayed until Resume"},
        {{kOk}, "waits for the work first"},
        {{kRemote}, "all ranks must call it, and one cannot"}}},
      // Resume
      {{{{kOk}, "as before Suspend"},
        {{kOk}, "the same, graph included"},
        {{}, "there is none while it is suspended"},
        {{kRemote}, "all ranks must call it, and one cannot"}}},
      // Finalize
      {{{{kOk}, "only destroy, abort and questions are left"},
        {{kOk}, "the same"},
        {{kOk}, "waits for the work"},
        {{kOk}, "nobody is waited for; if the communicator has failed, its error"}}},
      // Destroy
      {{{{kOk}, "the handle is gone"},
        {{kOk}, "the handle is gone; the graph can still be replayed"},
        {{kOk}, "waits for the work; the handle is gone"},
        {{kOk}, "as abort"}}},
      // Abort
      {{{{kOk}, "the handle is gone"},
        {{kOk}, "the handle is gone; the graph can only be destroyed"},
        {{kOk}, "the work is given up; the handle is gone"},
        {{kOk}, "the same; nobody is waited for"}}},
  }};
  return table;
}

std::string textOf(const Expected& one) {
  std::string codes;
  for (const ncclResult_t code : one.answers) codes += (codes.empty() ? "**" : " or ") + std::to_string(code);
  return (codes.empty() ? "not defined: " : codes + "** ") + one.words;
}

}  // namespace

const Expected& expected(Function function, Situation situation) {
  return rows()[static_cast<std::size_t>(function)][static_cast<std::size_t>(situation)];
}

const char* nameOf(Function function) {
  static constexpr std::array kNames = {"Init",    "Split",  "Shrink",   "Shrink (abort)", "Grow", "Revoke",
                                        "Suspend", "Resume", "Finalize", "Destroy",        "Abort"};
  static_assert(kNames.size() == kFunctions);
  return kNames[static_cast<std::size_t>(function)];
}

const char* nameOf(Situation situation) {
  static constexpr std::array kNames = {"idle", "live graph", "outstanding work", "dead peer"};
  return kNames[static_cast<std::size_t>(situation)];
}

const char* nameOf(Transport transport) {
  static constexpr std::array kNames = {"P2P", "SHM", "TCP"};
  return kNames[static_cast<std::size_t>(transport)];
}

std::string markdown() {
  std::string text = "| |";
  std::string line = "|---|";
  for (int s = 0; s < kSituations; ++s) {
    text += std::string(" ") + nameOf(static_cast<Situation>(s)) + " |";
    line += "---|";
  }
  text += "\n" + line + "\n";
  for (int f = 0; f < kFunctions; ++f) {
    text += std::string("| ") + nameOf(static_cast<Function>(f)) + " |";
    for (int s = 0; s < kSituations; ++s)
      text += " " + textOf(expected(static_cast<Function>(f), static_cast<Situation>(s))) + " |";
    text += "\n";
  }
  return text;
}

std::string describe(const Cell& cell) {
  return std::string(nameOf(cell.function)) + ", " + (cell.blocking ? "blocking" : "non-blocking") + ", " +
         (cell.processes ? "processes" : "threads") + ", " + nameOf(cell.transport) + ", " + nameOf(cell.situation);
}

}  // namespace lifecycle
