// The first part of the text report: versions, and how the job lies on its nodes.
#pragma once

#include <span>
#include <string>

#include "ras/report/survey.h"

namespace tutti::ras {

/// The lines with the versions.
std::string versionLines(const LibraryFacts& library);

/// "Job summary": one row where all nodes are alike; else tables of how many nodes have how many processes, and so on,
/// and who differs. Who has left does not count.
std::string jobSummary(std::span<const SurveyedProcess> processes);

}  // namespace tutti::ras
