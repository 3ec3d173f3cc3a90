// tutti-topo: shows what a machine looks like to tutti, and what it makes of it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>

#include "tutti_topo/commands.h"

namespace {

using namespace tutti::tool;

constexpr const char* kExamples = R"(
Examples:
  tutti-topo show live                              this machine as a tree
  tutti-topo paths machine.xml --gpus 0,1,4,5       how four of its GPUs reach each other and the NICs
  tutti-topo search machine.xml                     rings and trees on this machine alone
  tutti-topo search machine.xml --nodes 2 --json    the same where several such machines work together
  tutti-topo draw machine.xml -o machine.svg        the machine with its rings
  tutti-topo draw tray.xml --hosts 18 --graph tree --channels 0,1 -o rack.svg
  tutti-topo validate machine.xml graphs.xml        does the machine carry these graphs?

A machine is a topology file, as NCCL_TOPO_DUMP_FILE writes it, or "live": the one that the tool runs on.

Exit status: 0 done, 1 validate found something wrong, 2 a wrong command line, file or choice.)";

/// What the command line says.
struct Words {
  MachineChoice choice;
  DrawRequest draw;
  std::string graphFile;
  bool json = false;
};

void addMachine(CLI::App& command, Words& words) {
  command.add_option("machine", words.choice.source, "topology file (XML), or live: this machine")
      ->required()
      ->type_name("MACHINE.xml|live");
  command.add_option("--gpus", words.choice.gpus, "NVML indices of the GPUs to use, in rank order; default: all")
      ->delimiter(',')
      ->check(CLI::Range(0, 1023))
      ->type_name("0,2,…");
  command.add_option("--nodes", words.choice.nodes, "how many such machines work together; several use NICs")
      ->check(CLI::Range(1, 16384))
      ->type_name("N");
  command.add_option("--hosts", words.choice.hosts, "how many such hosts NVLink joins into one machine")
      ->check(CLI::Range(1, 64))
      ->type_name("N");
  command.add_flag("--collnet", words.choice.collNet, "take all NICs as capable of collectives");
}

void addDraw(CLI::App& command, Words& words) {
  command.add_option("-o,--output", words.draw.output, "file to write; default: stdout")->type_name("FILE.svg");
  command.add_option("--graph", words.draw.graph, "whose channels are drawn")
      ->check(CLI::IsMember({"ring", "tree", "collnetChain", "collnetDirect", "nvls", "none"}))
      ->capture_default_str();
  command.add_option("--channels", words.draw.channels, "channels to show; a browser can show the others")
      ->delimiter(',')
      ->check(CLI::Range(0, 63))
      ->type_name("0,1,…");
  command.add_option("--graphs", words.draw.graphFile, "graphs of this file in place of a search")
      ->type_name("GRAPHS.xml");
  command.add_option("--title", words.draw.title, "above the picture; default: the file's name")->type_name("TEXT");
}

int run(int argc, char** argv) {
  Words words;
  CLI::App app("Shows what a machine looks like to tutti, and which rings and trees it makes of it.", "tutti-topo");
  app.footer(kExamples);
  app.require_subcommand(1);
  struct Command {
    CLI::App* app;
    std::function<int()> run;
  };
  std::vector<Command> commands;
  const auto add = [&](const char* name, const char* what, std::function<int()> run) {
    commands.push_back({app.add_subcommand(name, what), std::move(run)});
    addMachine(*commands.back().app, words);
    return commands.back().app;
  };
  add("show", "the machine as a tree of text", [&] { return runShow(words.choice); });
  add("paths", "types and bandwidths of the ways between GPUs and NICs", [&] { return runPaths(words.choice); });
  add("search", "all graphs: channels, bandwidths, bounds, time", [&] {
    return runSearch(words.choice, words.json);
  })->add_flag("--json", words.json, "for programs");
  addDraw(*add("draw", "the machine and its channels as a picture (SVG)",
               [&] { return runDraw(words.choice, words.draw); }),
          words);
  add("validate", "does the machine carry its graphs?", [&] { return runValidate(words.choice, words.graphFile); })
      ->add_option("graphs", words.graphFile, "graph file; default: what the search finds")
      ->type_name("GRAPHS.xml");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  silenceLog();
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tutti-topo: %s\n", error.what());
    return 2;
  }
}
