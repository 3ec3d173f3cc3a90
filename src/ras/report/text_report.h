// The report for people, in two parts: what is known at once, and what had to be collected.
#pragma once

#include <span>
#include <string>

#include "ras/report/survey.h"

namespace tutti::ras {

/// Versions, job summary, and the beginning of the line "Communicators...".
std::string reportBegin(const LibraryFacts& library, std::span<const SurveyedProcess> processes);

/// The rest of that line, the table of communicators, errors and warnings. `verbose`: more of the ranks that differ.
std::string reportRest(const Survey& survey, bool verbose);

}  // namespace tutti::ras
