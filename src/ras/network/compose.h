// From answers of processes to a view of the whole job.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "ras/network/members.h"
#include "ras/network/messages.h"

namespace tutti::ras {

/// Ranks without data that a survey lists at most: sizes of communicators are what others say.
inline constexpr std::size_t kMostAbsent = 2 * Members::kMost;

/// Puts together what was answered. Where two claim to be one rank, or say different sizes, the first counts. Ranks of
/// which nobody says anything are those that are missing. `unresponsive`: of whom somebody has waited in vain for a
/// sign.
Survey compose(const std::vector<const Member*>& members, const std::map<ProcessId, Answer>& answers,
               std::set<ProcessId> unresponsive);

}  // namespace tutti::ras
