#include "trace_command.h"

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/log.h"
#include "trace_job.h"
#include "trace_perfetto.h"
#include "trace_summary.h"
#include "trace_svg.h"

namespace tutti::tool {

namespace {

bool writeFile(const std::string& path, const std::string& content) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  bool good = file != nullptr && std::fwrite(content.data(), 1, content.size(), file) == content.size();
  if (file != nullptr && std::fclose(file) != 0) good = false;
  if (!good) std::fprintf(stderr, "tutti-info: %s cannot be written: %s\n", path.c_str(), errnoText(errno).c_str());
  return good;
}

}  // namespace

int runTraceCommand(const TraceCommand& command) {
  bool good = true;
  std::vector<ProcessTrace> traces;
  for (const std::string& path : command.files) {
    std::string why;
    auto trace = readTrace(path, why);
    if (!trace) {
      std::fprintf(stderr, "tutti-info: %s cannot be read: %s\n", path.c_str(), why.c_str());
      good = false;
      continue;
    }
    for (const std::string& remark : trace->remarks) {
      std::fprintf(stderr, "tutti-info: %s: %s\n", path.c_str(), remark.c_str());
    }
    traces.push_back(std::move(*trace));
  }
  if (traces.empty()) return 1;
  const Job job = joinTraces(std::move(traces));
  if (!command.output.empty()) good = writeFile(command.output, perfettoOf(job)) && good;
  if (command.summary || (command.output.empty() && command.operation.empty())) {
    std::fputs(summaryOf(job).c_str(), stdout);
  }
  if (command.operation.empty()) return good ? 0 : 1;
  const Operation* const operation = findOperation(job, command.operation);
  if (operation == nullptr) {
    std::fprintf(stderr, "tutti-info: there is no operation %s in these traces; name it as 17 or AllReduce:17\n",
                 command.operation.c_str());
    return 1;
  }
  std::fputs(svgOf(job, *operation).c_str(), stdout);
  return good ? 0 : 1;
}

}  // namespace tutti::tool
