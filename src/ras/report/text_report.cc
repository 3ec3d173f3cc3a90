#include "ras/report/text_report.h"

#include <fmt/format.h>

#include <vector>

#include "ras/report/comm_groups.h"
#include "ras/report/faults.h"
#include "ras/report/job_summary.h"
#include "ras/report/lines.h"

namespace tutti::ras {

namespace {

std::string heading(std::string_view name, const std::string& body) {
  if (body.empty()) return body;
  return fmt::format("{}\n{}\n\n{}", name, std::string(name.size(), '='), body);
}

}  // namespace

std::string reportBegin(const LibraryFacts& library, std::span<const SurveyedProcess> processes) {
  return versionLines(library) + jobSummary(processes) + "Communicators...";
}

std::string reportRest(const Survey& survey, bool verbose) {
  const std::vector<CommGroup> groups = groupsOf(survey);
  std::string errors = jobErrors(survey, verbose);
  std::string warnings = jobWarnings(survey);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t c = 0; c < groups[g].comms.size(); ++c) {
      const CommFacts& comm = *groups[g].comms[c];
      const std::string name = fmt::format("#{}-{} ({:016x})", g, c, comm.key.hash);
      errors += commErrors(name, comm, survey, verbose);
      warnings += commWarnings(name, comm, survey, verbose);
    }
  }
  return fmt::format(" ({:.2f}s)\n=============\n\n{}\n{}{}", survey.seconds, groupTable(groups),
                     heading("Errors", errors), heading("Warnings", warnings));
}

}  // namespace tutti::ras
