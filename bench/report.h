// The table people compare by eye, and the same figures as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/collective.h"
#include "bench/options.h"
#include "bench/world.h"

namespace bench {

/// Figures of one way (out of place or in place) of one size.
struct Timing {
  double seconds = 0;
  double algBandwidth = 0;             ///< GB/s: size / time
  double busBandwidth = 0;             ///< GB/s
  std::optional<std::uint64_t> wrong;  ///< elements; none: not checked
};

struct Row {
  std::size_t bytes = 0;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclNumOps;  ///< ncclNumOps: none
  int root = -1;
  Timing outOfPlace;
  std::optional<Timing> inPlace;
};

/// Written by the thread of rank 0 only.
class Report {
 public:
  Report(const Options& options, const Collective& collective) : options_(options), collective_(collective) {}
  void header(const Shared& shared);
  void row(const Row& row);
  /// Average bus bandwidth and the verdict; writes the JSON file.
  void footer();

 private:
  bool quiet() const { return options_.jsonFile == "-"; }
  double averageBusBandwidth() const;
  std::uint64_t totalWrong() const;
  std::string json() const;

  const Options& options_;
  const Collective& collective_;
  std::vector<Row> rows_;
};

}  // namespace bench
