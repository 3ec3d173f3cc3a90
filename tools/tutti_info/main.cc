// tutti-info: tells about this installation of tutti.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "base/settings/params.h"
#include "metrics.h"
#include "networks.h"
#include "stalls.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app("Tells what tutti would do here.", "tutti-info");
  bool env = false;
  bool markdown = false;
  app.add_flag("--env", env, "list all settings, with their values in this environment and files");
  app.add_flag("--markdown", markdown, "with --env: as docs/env.md, without values")->needs("--env");
  CLI::App* const stalls = app.add_subcommand("stalls", "ask a running process what its operations wait for");
  int pid = 0;
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
  CLI11_PARSE(app, argc, argv);
  if (live->parsed()) return tutti::tool::showTop(top);
  if (counters->parsed()) return tutti::tool::printMetrics(metrics);
  if (stalls->parsed()) return tutti::askForStalls(pid);
  if (net->parsed()) return tutti::tool::printNetworks();
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
