#include "ras/report/outliers.h"

#include <fmt/format.h>

#include <algorithm>

#include "ras/report/lines.h"

namespace tutti::ras {

namespace {

constexpr std::size_t kMostListed = 10;

bool listed(std::size_t members, std::size_t all, bool verbose) {
  if (members == 1) return true;
  if (verbose) return 2 * members < all;
  return members <= kMostListed && 4 * members <= all;
}

}  // namespace

std::string rankLine(const NamedRank& rank, const std::string& said, const Survey& survey) {
  return fmt::format("  Rank {}{} -- {}\n", rank.rank, said,
                     placeText(rank.cudaDevice, rank.nvmlDevice, survey.find(rank.process)));
}

std::string outlierText(const RankGroups& groups, const OutlierWords& words, const Survey& survey, bool verbose) {
  using Group = const RankGroups::value_type*;
  std::vector<Group> sorted;
  std::size_t all = 0;
  for (const auto& group : groups) {
    sorted.push_back(&group);
    all += group.second.size();
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](Group a, Group b) { return a->second.size() > b->second.size(); });
  std::string text;
  for (const Group group : sorted) {
    const auto& [value, members] = *group;
    const bool majority = group == sorted.front() && groups.size() > 1 && members.size() > 1;
    if (members.size() > 1) text += fmt::format("  {}{}\n", ranksText(members.size()), words.many(value));
    if (majority || !listed(members.size(), all, verbose)) continue;
    for (const NamedRank& rank : members) text += rankLine(rank, words.one(value), survey);
  }
  return text;
}

}  // namespace tutti::ras
