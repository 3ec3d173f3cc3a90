// Which ranks of a communicator differ from most others, and how much a report says of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ras/report/survey.h"

namespace tutti::ras {

/// A rank with or without data, as detail lines name it.
struct NamedRank {
  std::int32_t rank = -1;
  ProcessId process = 0;
  std::int32_t cudaDevice = -1;
  std::int32_t nvmlDevice = -1;
};

/// Ranks by what they have in common.
using RankGroups = std::map<std::uint64_t, std::vector<NamedRank>>;

/// How groups and their members are put in words.
struct OutlierWords {
  std::function<std::string(std::uint64_t)> many;  ///< " have status RUNNING", behind "3 ranks"
  std::function<std::string(std::uint64_t)> one;   ///< " has status RUNNING", behind "Rank 3"
};

/// Indented lines of all groups, the largest first, with the members of small ones: of one member always, of up to 10
/// and a quarter of all; with `verbose` of less than half of all.
std::string outlierText(const RankGroups& groups, const OutlierWords& words, const Survey& survey, bool verbose);

/// "  Rank 3{said} -- GPU 0 managed by …".
std::string rankLine(const NamedRank& rank, const std::string& said, const Survey& survey);

}  // namespace tutti::ras
