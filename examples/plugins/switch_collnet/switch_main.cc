// The switch as a program of its own: for nodes whose plugins have SWITCH_COLLNET_ADDRESS.
//
//   switch_collnet_switch --port-file /tmp/port &        # takes a free port, and writes the number there
//   switch_collnet_switch --ask 127.0.0.1:PORT           # prints the statistics of a running one
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "switch.h"

namespace {

using namespace switch_collnet;

constexpr char kUsage[] =
    "usage: switch_collnet_switch [--host A] [--port N] [--port-file F] [--statistics-file F] [--faults LIST]\n"
    "       switch_collnet_switch --ask A:N\n"
    "\n"
    "Reduces and gathers for nodes that use the plugin \"switch\", until SIGTERM or SIGINT; prints what each has "
    "sent.\n"
    "  --host A             address to listen at (127.0.0.1)\n"
    "  --port N             port to listen at (0: a free one)\n"
    "  --port-file F        where to write the port, once it is open\n"
    "  --statistics-file F  where to write the statistics at the end, too\n"
    "  --faults LIST        what goes wrong: late=MS, lost=N, wrong=N, short=N, each @NODE, and die=N; also from\n"
    "                       the environment (SWITCH_COLLNET_FAULTS)\n"
    "  --ask A:N            prints the statistics of the switch there\n"
    "exit: 0 done, 1 it cannot listen or ask, 2 wrong arguments, 3 a fault has let it die\n";

struct Options {
  std::string host = "127.0.0.1", port = "0", portFile, statisticsFile, faults, ask;

  bool parse(int argc, char** argv) {
    const struct {
      const char* name;
      std::string* value;
    } known[] = {{"--host", &host},          {"--port", &port},
                 {"--port-file", &portFile}, {"--statistics-file", &statisticsFile},
                 {"--faults", &faults},      {"--ask", &ask}};
    for (int i = 1; i < argc; i += 2) {
      std::string* value = nullptr;
      for (const auto& option : known) {
        if (std::strcmp(argv[i], option.name) == 0) value = option.value;
      }
      if (value == nullptr || i + 1 == argc) return false;
      *value = argv[i + 1];
    }
    return true;
  }
};

Switch* running = nullptr;

void stopRunning(int) {
  running->stop();
}

int complain(const std::string& what) {
  std::fprintf(stderr, "switch_collnet_switch: %s\n", what.c_str());
  return 1;
}

int ask(const Address& address) {
  Stream stream(connectTo(address));
  stream.send({.kind = Kind::AskStatistics}, nullptr, 0);
  Bytes text;
  const auto end = Clock::now() + std::chrono::seconds(5);
  while (stream.fd().valid() && connectState(stream.fd()) == EINPROGRESS && Clock::now() < end) {
    waitFor(stream.fd(), POLLOUT, Milliseconds(100));
  }
  while (stream.fd().valid() && stream.alive() && Clock::now() < end) {
    stream.flush();
    const auto frame = stream.receive([&](const Frame& f) {
      text.resize(f.payload);
      return text.data();
    });
    if (frame) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      return 0;
    }
    waitFor(stream.fd(), POLLIN, Milliseconds(100));
  }
  return complain("no answer from " + address.text() + " " + stream.error());
}

/// Under another name first: whoever waits for the file finds all of it.
bool writePort(const std::string& file, const Address& address) {
  const std::string unfinished = file + ".new";
  std::ofstream(unfinished) << ntohs(address.port) << "\n";
  return std::rename(unfinished.c_str(), file.c_str()) == 0;
}

int serve(const Options& options, Address address) {
  Faults faults;
  const char* const fromEnvironment = std::getenv("SWITCH_COLLNET_FAULTS");
  const std::string list = options.faults.empty() && fromEnvironment != nullptr ? fromEnvironment : options.faults;
  if (const std::string why = faults.parse(list); !why.empty()) return complain("--faults: " + why);
  Fd listener = listenAt(address);
  if (!listener.valid()) return complain("cannot listen at " + address.text() + ": " + std::strerror(errno));
  Switch theSwitch(std::move(listener), faults);
  running = &theSwitch;
  std::signal(SIGTERM, stopRunning);
  std::signal(SIGINT, stopRunning);
  if (!options.portFile.empty() && !writePort(options.portFile, address)) {
    return complain("cannot write " + options.portFile + ": " + std::strerror(errno));
  }
  std::printf("switch_collnet_switch: listening at %s\n", address.text().c_str());
  std::fflush(stdout);
  const bool lived = theSwitch.run();
  const std::string statistics = theSwitch.statistics();
  std::fputs(statistics.c_str(), stdout);
  if (!options.statisticsFile.empty()) std::ofstream(options.statisticsFile) << statistics;
  return lived ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const bool parsed = options.parse(argc, argv);
  const auto address = Address::parse(options.ask.empty() ? options.host + ":" + options.port : options.ask);
  if (!parsed || !address) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  return options.ask.empty() ? serve(options, *address) : ask(*address);
}
