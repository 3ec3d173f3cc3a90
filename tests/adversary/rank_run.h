// One rank of a job: makes its communicators, runs the operations of the seed, and reacts to errors as an application
// would.
#pragma once
#include <string>
#include <vector>

#include "cuda_runtime_api.h"
#include "deeds.h"
#include "nccl.h"
#include "operations.h"
#include "run_options.h"

namespace tutti::adversary {

/// How a rank ended; the larger one is told by the exit code of its process.
enum class RankEnd { Finished = 0, Left = 41, Failed = 42, WrongResult = 43, CannotBegin = 44, CleanupFailed = 45 };

/// Used by one thread.
class RankRun {
 public:
  /// `jobRank` is also the device. `deeds` is of the process and outlives this.
  RankRun(const RunOptions& options, int jobRank, Deeds& deeds) : options_(options), jobRank_(jobRank), deeds_(deeds) {}

  /// All of it, communicators ended included.
  RankEnd run();

 private:
  struct Comm {
    int number = 0;  ///< of the job
    int rank = -1;   ///< this rank's number in it
    int size = 0;
    ncclComm_t handle = nullptr;
    cudaStream_t stream = nullptr;
    OperationRun operation;
    bool failed = false;  ///< reported
    bool ended = false;
  };

  bool prepare();
  bool initAll();
  bool init(Comm& comm);
  bool idOf(Comm& comm, ncclUniqueId& id);
  bool runBatch(int batch);
  bool finish(const std::vector<Operation>& operations);
  void idle();
  /// Waits until the call that a non-blocking communicator has begun is done.
  ncclResult_t settle(const Comm& comm) const;
  bool busy(const std::vector<Operation>& operations);
  /// Reports each communicator that has failed since it was last asked. False if any has.
  bool allWell();
  void fail(Comm& comm, ncclResult_t result, const std::string& call);
  RankEnd endAfterFailure();
  RankEnd destroyAll();
  bool leavesAt(const std::string& name, int batch) const;
  RankEnd leave();
  bool end(Comm& comm, const std::string& call);
  void stage(const std::string& name, int batch = 0);
  Comm* memberOf(const Operation& operation);

  const RunOptions& options_;
  int jobRank_;
  Deeds& deeds_;
  std::vector<Comm> comms_ = {};
  bool wrong_ = false;
};

}  // namespace tutti::adversary
