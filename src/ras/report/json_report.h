// The report for programs: all that was collected, without judgement.
#pragma once

#include <chrono>
#include <string>

#include "ras/report/survey.h"

namespace tutti::ras {

/// "2026-05-01 12:00:00", local time.
std::string timestampText(std::chrono::system_clock::time_point when);

/// One object, indented by two blanks, with a new line at the end. Keys are only ever added.
std::string jsonReport(const LibraryFacts& library, const Survey& survey, std::chrono::system_clock::time_point when);

}  // namespace tutti::ras
