// tutti-info: tells about this installation of tutti.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "base/settings/params.h"
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
  CLI11_PARSE(app, argc, argv);
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
