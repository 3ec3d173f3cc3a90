// What is known of a job, as plain values: what processes tell each other, and what reports are made from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/socket/address.h"

namespace tutti::ras {

/// Drawn at random by each process; 0: not known.
using ProcessId = std::uint64_t;

/// What has become of a process. A later one replaces an earlier one.
enum class ProcessState : std::uint8_t {
  Alive,
  Dead,  ///< nothing was heard of it for so long that nobody asks it any more
  Left,  ///< it has said goodbye
};

/// A process of the job.
struct ProcessFacts {
  ProcessId id = 0;
  Address address;  ///< where it listens for other processes of the job
  std::int32_t pid = 0;
  std::uint64_t hostHash = 0;     ///< equal on processes of one host
  std::uint64_t cudaDevices = 0;  ///< bit n: device n, as the process counts
  std::uint64_t nvmlDevices = 0;  ///< bit n: device n, as nvidia-smi counts
  ProcessState state = ProcessState::Alive;
};

/// Functions whose calls are counted; the first kCollectives in the order of reports.
enum class Func : std::uint8_t {
  Broadcast,
  Reduce,
  AllGather,
  ReduceScatter,
  AllReduce,
  Send,
  Recv,
  AlltoAll,
  Gather,
  Scatter,
};
inline constexpr std::size_t kCollectives = 5;
inline constexpr std::size_t kFuncs = 10;
std::string_view funcName(Func func);

/// Calls that were enqueued, by Func.
using OpCounts = std::array<std::uint64_t, kFuncs>;

/// The last call of a rank.
struct LastOp {
  std::int8_t func = -1;    ///< Func; -1: there was none
  std::uint64_t bytes = 0;  ///< of its count and type
  std::uint64_t sequence = 0;
  std::uint64_t ageMs = 0;
};

/// What changes of a rank.
struct RankState {
  std::int32_t initState = 0;   ///< 0: ready, ncclInProgress: initialising, else an error
  std::int32_t asyncError = 0;  ///< as ncclCommGetAsyncError
  bool finalizeCalled = false;
  bool destroyFlag = false;
  bool abortFlag = false;
  OpCounts counts{};
  LastOp lastOp;
};

/// A rank of a process that has answered.
struct RankFacts {
  std::int32_t rank = -1;
  ProcessId process = 0;
  std::int32_t cudaDevice = -1;
  std::int32_t nvmlDevice = -1;
  RankState state;
};

/// A rank without data.
struct AbsentRank {
  std::int32_t rank = -1;
  ProcessId process = 0;  ///< 0: not known
  std::int32_t cudaDevice = -1;
  std::int32_t nvmlDevice = -1;
  bool answered = false;  ///< its process has answered, but knows the communicator no more
};

/// What sets communicators apart.
struct CommKey {
  std::uint64_t hash = 0;      ///< commId of log lines
  std::uint64_t hostHash = 0;  ///< of its rank 0
  std::uint64_t pidHash = 0;   ///< of its rank 0
  friend auto operator<=>(const CommKey&, const CommKey&) = default;
};

/// A rank as its peers know it.
struct CommMember {
  ProcessId process = 0;  ///< 0: that process takes no part in this network
  std::int32_t cudaDevice = -1;
  std::int32_t nvmlDevice = -1;
};
/// All ranks of a communicator, in order.
using CommMembers = std::shared_ptr<const std::vector<CommMember>>;

/// A communicator as far as its ranks have told. Both lists in order of ranks, no rank twice.
struct CommFacts {
  CommKey key;
  std::int32_t size = 0;
  std::vector<RankFacts> ranks;
  std::vector<AbsentRank> absent;
  CommMembers members;       ///< null: not known
  std::string name = {};     ///< commName of its configuration, as one of its ranks has it; empty: none
  std::uint64_t parent = 0;  ///< hash of the one that it was made from; 0: it was made from none
};

/// What a rank is doing, from weak to strong: the strongest that applies counts.
enum class RankStatus : std::uint8_t { NoComm, Init, Running, Finalize, Abort };
std::string_view statusName(RankStatus status);
RankStatus statusOf(const RankState& state);

/// A process of a survey.
struct SurveyedProcess {
  ProcessFacts facts;
  bool answered = false;
  bool unresponsive = false;  ///< somebody has waited in vain for a sign of it
};

/// The whole job. Processes in the order of their addresses, communicators with the largest first.
struct Survey {
  std::vector<SurveyedProcess> processes;
  std::vector<CommFacts> comms;
  int timeouts = 0;    ///< processes that were given up
  double seconds = 0;  ///< that collecting took

  void add(SurveyedProcess process);
  /// One that was added; null where there is none.
  const SurveyedProcess* find(ProcessId id) const;

 private:
  std::unordered_map<ProcessId, std::size_t> places_;
};

/// The library that reports.
struct LibraryFacts {
  std::string_view version = "";  ///< "2.32.3"
  int compiledCuda = 0;           ///< 13000: CUDA 13.0
  int runtimeCuda = 0;
  int driverCuda = 0;
};

}  // namespace tutti::ras
