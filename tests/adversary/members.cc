#include "members.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "report.h"

namespace tutti::adversary {

namespace {

std::string pathOf(const RunOptions& options, int comm) {
  return options.ids + "/id." + std::to_string(comm);
}

}  // namespace

int sizeOf(int comm, int size) {
  return comm == 2 && size > 2 ? size - 1 : size;
}

int rankIn(int comm, int jobRank, int size, bool turned) {
  if (comm == 1 && turned) return (jobRank + 1) % size;
  return jobRank < sizeOf(comm, size) ? jobRank : -1;
}

ncclResult_t makeIds(const RunOptions& options) {
  if (options.ids.empty()) return ncclSuccess;
  for (int comm = 0; comm < options.comms; ++comm) {
    for (const int jobRank : options.ranks) {
      if (rankIn(comm, jobRank, options.size, true) != 0) continue;
      ncclUniqueId id;
      if (const ncclResult_t made = ncclGetUniqueId(&id); made != ncclSuccess) return made;
      const std::string path = pathOf(options, comm);
      std::ofstream(path + ".part", std::ios::binary).write(id.internal, sizeof id.internal);
      if (std::rename((path + ".part").c_str(), path.c_str()) != 0) return ncclSystemError;
    }
  }
  return ncclSuccess;
}

bool awaitId(const RunOptions& options, int comm, ncclUniqueId& id) {
  const long end = microsecondsNow() + options.patienceMs * 1000L;
  while (microsecondsNow() < end) {
    std::ifstream file(pathOf(options, comm), std::ios::binary);
    if (file.read(id.internal, sizeof id.internal)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace tutti::adversary
