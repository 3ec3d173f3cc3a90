// The paragraphs of the text report about what is wrong. Each ends with an empty line, and is empty where all is well.
#pragma once

#include <string>
#include <string_view>

#include "ras/report/survey.h"

namespace tutti::ras {

/// INCOMPLETE and DEAD: processes without data.
std::string jobErrors(const Survey& survey, bool verbose);
/// TIMEOUT: processes that were given up.
std::string jobWarnings(const Survey& survey);
/// INCOMPLETE and ERROR: ranks of one communicator. `name`: "#0-0 (16 digits)".
std::string commErrors(std::string_view name, const CommFacts& comm, const Survey& survey, bool verbose);
/// MISMATCH: ranks that differ in status or in how much they have called.
std::string commWarnings(std::string_view name, const CommFacts& comm, const Survey& survey, bool verbose);

}  // namespace tutti::ras
