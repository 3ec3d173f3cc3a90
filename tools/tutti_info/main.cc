// tutti-info: tells about this installation of tutti.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "base/settings/params.h"
#include "metrics.h"
#include "networks.h"
#include "ras.h"
#include "stalls.h"
#include "trace_command.h"

namespace {

const CLI::App* addRas(CLI::App& app, tutti::RasQuestion& question) {
  CLI::App* const ras = app.add_subcommand("ras", "ask a running job about its processes and communicators");
  ras->add_option("-f,--format", question.format, "text or json")->check(CLI::IsMember({"text", "json"}));
  ras->add_flag("-v,--verbose", question.verbose, "more of the ranks that differ from others");
  // The one-letter form of --help is the host's here, as with ncclras.
  ras->set_help_flag("--help", "print this help message and exit");
  ras->add_option("-h,--host", question.host, "where the job runs (default: as NCCL_RAS_ADDR says, localhost)")
      ->type_name("HOST");
  ras->add_option("-p,--port", question.port, "port (default: as NCCL_RAS_ADDR says, 28028)")
      ->check(CLI::Range(1, 65535));
  ras->add_option("-t,--timeout", question.timeout, "seconds for all processes to answer; 0: no limit")
      ->capture_default_str()
      ->check(CLI::Range(0, 86400));
  ras->add_option("-m,--monitor", question.groups, "print events as they come: lifecycle, trace, all")->expected(0, 1);
  return ras;
}

CLI::App* addTrace(CLI::App& app, tutti::tool::TraceCommand& command) {
  CLI::App* const trace = app.add_subcommand("trace", "tell what traces (TUTTI_TRACE) of a job's processes show");
  trace->add_option("files", command.files, "the files of all ranks")->required()->type_name("FILE");
  trace->add_option("-o,--output", command.output, "write a file for the Perfetto UI (https://ui.perfetto.dev)")
      ->type_name("FILE");
  trace->add_flag("--summary", command.summary, "say in words where the time went (so without other options)");
  trace->add_option("--svg", command.operation, "draw one collective, as 17 or AllReduce:17, to standard output")
      ->type_name("OPERATION");
  return trace;
}

int run(int argc, char** argv) {
  CLI::App app("Tells what tutti would do here.", "tutti-info");
  bool env = false;
  bool markdown = false;
  app.add_flag("--env", env, "list all settings, with their values in this environment and files");
  app.add_flag("--markdown", markdown, "with --env: as docs/env.md, without values")->needs("--env");
  CLI::App* const stalls = app.add_subcommand("stalls", "ask a running process what its operations wait for");
  int pid = 0;
  tutti::tool::TraceCommand traced;
  stalls->add_option("pid", pid, "number of the process, as the process itself sees it")
      ->required()
      ->check(CLI::PositiveNumber);
  const CLI::App* const net = app.add_subcommand("net", "tell which networks there are, which one is taken, and why");
  tutti::tool::TopOptions top;
  CLI::App* const live = app.add_subcommand("top", "show what running processes do, again and again");
  live->add_option("pid", top.pids, "processes, as they see themselves; none: all of this user")
      ->check(CLI::PositiveNumber);
  live->add_option("-d,--delay", top.seconds, "seconds between two looks")->check(CLI::Range(0.3, 3600.0));
  live->add_option("-n,--rounds", top.rounds, "end after so many tables; 0: go on")->check(CLI::NonNegativeNumber);
  tutti::tool::MetricsOptions metrics;
  CLI::App* const counters = app.add_subcommand("metrics", "print counters of running processes for Prometheus");
  counters->add_option("pid", metrics.pids, "processes, as they see themselves; none: all of this user")
      ->check(CLI::PositiveNumber);
  bool prometheus = true;
  counters->add_flag("--prometheus", prometheus, "in the text form of Prometheus (there is no other)");
  counters->add_option("--serve", metrics.port, "serve them by HTTP at this port of 127.0.0.1 instead; 0: any port")
      ->check(CLI::Range(0, 65535));
  tutti::RasQuestion question;
  const CLI::App* const ras = addRas(app, question);
  const CLI::App* const trace = addTrace(app, traced);
  CLI11_PARSE(app, argc, argv);
  if (live->parsed()) return tutti::tool::showTop(top);
  if (counters->parsed()) return tutti::tool::printMetrics(metrics);
  if (trace->parsed()) return tutti::tool::runTraceCommand(traced);
  if (stalls->parsed()) return tutti::askForStalls(pid);
  if (net->parsed()) return tutti::tool::printNetworks();
  if (ras->parsed()) {
    question.monitor = ras->count("--monitor") > 0;
    return tutti::askForReport(question);
  }
  if (!env) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  }
  const std::string text = markdown ? tutti::paramsMarkdown() : tutti::paramsTable(tutti::processEnvironment());
  std::fputs(text.c_str(), stdout);
  if (!markdown) {
    for (const std::string& sentence : tutti::unknownSettings(tutti::processEnvironment())) {
      std::printf("%s\n", sentence.c_str());
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tutti-info: %s\n", error.what());
    return 1;
  }
}
