// tutti-info ras: asks a running job about itself.
#pragma once

#include <string>

namespace tutti {

/// What is asked, and of whom.
struct RasQuestion {
  std::string host;  ///< "": as NCCL_RAS_ADDR says
  int port = 0;      ///< 0: the same
  std::string format;
  bool verbose = false;
  int timeout = 5;  ///< seconds for the job's processes to answer; 0: no limit
  bool monitor = false;
  std::string groups;  ///< of events; "": those that the job chooses
};

/// Prints what is answered, or why nothing is. The exit code.
int askForReport(const RasQuestion& question);

}  // namespace tutti
