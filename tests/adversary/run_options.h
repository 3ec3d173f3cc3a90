// What the campaign asks of one process of a job: NAME=VALUE arguments.
#pragma once
#include <string>
#include <vector>

namespace tutti::adversary {

/// What a process does to itself, and when. `how` is empty where it is no victim.
struct Deed {
  std::string how;    ///< kill, stop, _exit, exit, leave, abort, segv, close, slow, pause
  std::string stage;  ///< before, init, connect, collective, idle, destroy
  int batch = 0;      ///< of the stages connect, collective, and idle: the batch of operations that it waits for
  long delayUs = 0;   ///< microseconds after the stage has begun
};

/// What an application does once a communicator has failed.
enum class Policy { AbortAll, AbortFailed, Destroy, Finalize };

struct RunOptions {
  int size = 1;            ///< ranks of the job
  std::vector<int> ranks;  ///< those of this process, a thread each
  int comms = 1;           ///< communicators of the job
  unsigned long seed = 0;  ///< decides the operations; the same in all processes
  int batches = 10;        ///< operations, one or two at a time
  bool blocking = true;    ///< of the communicators' configuration
  Policy policy = Policy::AbortAll;
  std::string ids;          ///< folder in which the unique ids are exchanged; empty: NCCL_COMM_ID names the root
  int idleBatch = -1;       ///< the batch before which all ranks are idle for a while; -1: none
  int idleMs = 0;           ///< how long
  int patienceMs = 30000;   ///< how long an operation may take before the rank calls it a hang
  int report = 1;           ///< descriptor for report()
  long threads = 0;         ///< RLIMIT_NPROC of the process' user from now on; 0: as it is
  bool fewKernels = false;  ///< only operations whose kernels are in builds with few of them
  bool lies = false;        ///< alters what it reports of errors: the judge must notice
  Deed deed;
};

/// Reads argv. Returns false, having said why on stderr, if an argument is unknown or malformed.
bool readOptions(int argc, char** argv, RunOptions& options);

}  // namespace tutti::adversary
