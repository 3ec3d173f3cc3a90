#include "lifecycle/table.h"

#include <algorithm>

namespace lifecycle {

namespace {

constexpr ncclResult_t kOk = ncclSuccess;
constexpr ncclResult_t kRemote = ncclRemoteError;

using Row = std::array<Expected, kSituations>;

/// Init, split, shrink and grow.
std::vector<Row> rowsOfMaking() {
  return {
      // Init
      {{{{kOk}, "a communicator beside the others"},
        {{kOk}, "the same"},
        {{kOk}, "the same; the work goes on"},
        {{kOk}, "among those who live"},
        {{kOk}, "among those who live"}}},
      // Split
      {{{{kOk}, "children; the parent stays as it is"},
        {{kOk}, "the same; the graph is of the parent"},
        {{kOk}, "the same; the work goes on"},
        {{kRemote}, "all ranks must call it, and one cannot"},
        {{kRemote}, "its error"}}},
      // Shrink, default
      {{{{kOk}, "a child without the excluded; the parent stays as it is"},
        {{kOk}, "the same; the graph is of the parent"},
        {{}, "the parent must be at rest"},
        {{kOk, kRemote}, "its error if the parent has failed: use the flag abort"},
        {{kRemote}, "its error: use the flag abort"}}},
      // Shrink, abort
      {{{{kOk}, "a child without the excluded; the parent can only be aborted"},
        {{kOk}, "the same; the graph must not be replayed"},
        {{kOk}, "the same; the work is given up"},
        {{kOk}, "the same, without the dead"},
        {{kOk}, "the same, without the dead; the work is given up"}}},
      // GetUniqueId of a communicator
      {{{{kOk}, "an id to grow by; nobody is waited for"},
        {{kOk}, "the same"},
        {{kOk}, "the same; the work goes on"},
        {{kOk, kRemote}, "an id; its error if the communicator has failed"},
        {{kRemote}, "its error"}}},
      // Grow
      {{{{kOk}, "a larger communicator; the parent stays as it is"},
        {{kOk}, "the same; the graph is of the parent"},
        {{kOk}, "the same; the work goes on"},
        {{kRemote},
         "all members must call it, and one cannot; one that has only aborted its handle may still come: who calls "
         "before word of that waits as long as an init may take (`TUTTI_BOOTSTRAP_TIMEOUT_SEC`)"},
        {{kRemote}, "its error"}}},
  };
}

/// What pauses a communicator, uses it and asks about it.
std::vector<Row> rowsOfUse() {
  return {
      // Revoke
      {{{{kOk}, "operations are refused from now on; split, shrink, destroy and abort are not"},
        {{kOk}, "the same; the graph must not be replayed"},
        {{kOk}, "the same; the work is given up"},
        {{kOk}, "the same; then shrink without the dead"},
        {{kOk}, "the same; the work is given up"}}},
      // Suspend
      {{{{kOk}, "memory is given back; operations are refused until Resume"},
        {{kOk}, "the same; the graph must not be replayed until Resume"},
        {{kOk}, "waits for the work first"},
        {{kRemote}, "all ranks must call it, and one cannot"},
        {{kRemote}, "its error"}}},
      // Resume
      {{{{kOk}, "as before Suspend"},
        {{kOk}, "the same, graph included"},
        {{}, "there is none while it is suspended"},
        {{kRemote}, "all ranks must call it, and one cannot"},
        {{}, "there is none while it is suspended"}}},
      // MemStats
      {{{{kOk}, "what it takes of the device"},
        {{kOk}, "the same"},
        {{kOk}, "the same; the work goes on"},
        {{kOk, kRemote}, "the same; its error if the communicator has failed"},
        {{kRemote}, "its error"}}},
      // Register
      {{{{kOk}, "a handle; this rank alone"},
        {{kOk}, "the same; the graph stays as it is"},
        {{kOk}, "the same; the work goes on, also from that buffer"},
        {{kOk, kRemote}, "the same; its error if the communicator has failed"},
        {{kRemote}, "its error"}}},
      // Deregister
      {{{{kOk}, "the handle is gone; this rank alone"},
        {{kOk}, "the same; graphs that use the buffer can still be replayed"},
        {{kOk}, "the same; the work goes on, also from that buffer"},
        {{kOk}, "the same"},
        {{kOk}, "the same"}}},
      // AllReduce
      {{{{kOk}, "carried out in the order of the stream"},
        {{kOk}, "the same; the graph stays as it is"},
        {{kOk}, "the same, after the work"},
        {{kRemote}, "it needs the dead: at once, or as its state within seconds"},
        {{kRemote}, "its error"}}},
      // GetAsyncError
      {{{{kOk}, "tells 0"},
        {{kOk}, "tells 0"},
        {{kOk}, "tells 0; the work goes on"},
        {{kOk}, "tells 0, or 6 if the communicator has failed"},
        {{kOk}, "tells 6 within seconds"}}},
  };
}

std::vector<Row> rowsOfEnds() {
  return {
      // Finalize
      {{{{kOk}, "only destroy, abort and questions are left"},
        {{kOk}, "the same"},
        {{kOk}, "waits for the work"},
        {{kOk}, "nobody is waited for; if the communicator has failed, its error"},
        {{kRemote}, "its error"}}},
      // Destroy
      {{{{kOk}, "the handle is gone"},
        {{kOk}, "the handle is gone; the graph can still be replayed"},
        {{kOk}, "waits for the work; the handle is gone"},
        {{kOk}, "as abort"},
        {{kOk}, "as abort"}}},
      // Abort
      {{{{kOk}, "the handle is gone"},
        {{kOk}, "the handle is gone; the graph can only be destroyed"},
        {{kOk}, "the work is given up; the handle is gone"},
        {{kOk}, "the same; nobody is waited for"},
        {{kOk}, "the work is given up; nobody is waited for"}}},
  };
}

const std::vector<Row>& rows() {
  static const std::vector<Row> table = [] {
    std::vector<Row> all;
    for (const auto& some : {rowsOfMaking(), rowsOfUse(), rowsOfEnds()})
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }();
  return table;
}

}  // namespace

const Expected& expected(Function function, Situation situation) {
  return rows()[static_cast<std::size_t>(function)][static_cast<std::size_t>(situation)];
}

const char* nameOf(Function function) {
  static constexpr std::array kNames = {"Init",     "Split",      "Shrink",    "Shrink (abort)", "CommGetUniqueId",
                                        "Grow",     "Revoke",     "Suspend",   "Resume",         "MemStats",
                                        "Register", "Deregister", "AllReduce", "GetAsyncError",  "Finalize",
                                        "Destroy",  "Abort"};
  static_assert(kNames.size() == kFunctions);
  return kNames[static_cast<std::size_t>(function)];
}

const char* nameOf(Situation situation) {
  static constexpr std::array kNames = {"idle", "live graph", "outstanding work", "dead peer",
                                        "outstanding work of a dead peer"};
  return kNames[static_cast<std::size_t>(situation)];
}

const char* nameOf(Transport transport) {
  static constexpr std::array kNames = {"P2P", "SHM", "TCP"};
  return kNames[static_cast<std::size_t>(transport)];
}

std::string codesOf(const Expected& one) {
  std::string codes;
  for (const ncclResult_t code : one.answers) codes += (codes.empty() ? "" : " or ") + std::to_string(code);
  return codes;
}

std::string listing() {
  std::string text;
  for (int f = 0; f < kFunctions; ++f) {
    for (int s = 0; s < kSituations; ++s) {
      const Expected& one = expected(static_cast<Function>(f), static_cast<Situation>(s));
      text += std::string(nameOf(static_cast<Function>(f))) + "\t" + nameOf(static_cast<Situation>(s)) + "\t" +
              codesOf(one) + "\t" + one.words + "\n";
    }
  }
  return text;
}

std::string describe(const Cell& cell) {
  return std::string(nameOf(cell.function)) + ", " + (cell.blocking ? "blocking" : "non-blocking") + ", " +
         (cell.processes ? "processes" : "threads") + ", " + nameOf(cell.transport) + ", " + nameOf(cell.situation);
}

}  // namespace lifecycle
