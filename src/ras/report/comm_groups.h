// Communicators as a report lists them: alike ones in one row.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ras/report/survey.h"

namespace tutti::ras {

/// What is wrong with a communicator.
struct CommFaults {
  bool incomplete = false;  ///< ranks of which nothing is known
  bool error = false;       ///< ranks whose init or asynchronous error is one
  bool mismatch = false;    ///< ranks that differ in status or counts
  bool any() const { return incomplete || error || mismatch; }
  friend auto operator<=>(const CommFaults&, const CommFaults&) = default;
};
CommFaults faultsOf(const CommFacts& comm);

/// Communicators of one row, in the survey's order.
struct CommGroup {
  std::vector<const CommFacts*> comms;
  std::size_t nodes = 0;
  std::size_t fewestOnNode = 0;
  std::size_t mostOnNode = 0;
  std::size_t size = 0;
  std::string_view status;  ///< the strongest of all ranks; "UNKNOWN" where there is no data
  CommFaults faults;
};

/// The groups of most ranks first. Pointers into `survey`.
std::vector<CommGroup> groupsOf(const Survey& survey);

/// The table, with its heads.
std::string groupTable(const std::vector<CommGroup>& groups);

}  // namespace tutti::ras
