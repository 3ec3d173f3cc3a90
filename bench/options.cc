#include "bench/options.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "bench/datatypes.h"

namespace bench {

bool parseBytes(const std::string& text, std::size_t* bytes) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    return false;
  }
  std::string unit = text.substr(used);
  if (!unit.empty() && (unit.back() == 'B' || unit.back() == 'b')) unit.pop_back();
  double scale = 1;
  if (unit == "K" || unit == "k") {
    scale = 1024.0;
  } else if (unit == "M" || unit == "m") {
    scale = 1024.0 * 1024;
  } else if (unit == "G" || unit == "g") {
    scale = 1024.0 * 1024 * 1024;
  } else if (!unit.empty()) {
    return false;
  }
  if (value < 0) return false;
  *bytes = static_cast<std::size_t>(value * scale);
  return true;
}

namespace {

CLI::Option* addBytes(CLI::App& app, const char* names, std::size_t* target, const char* help) {
  return app
      .add_option_function<std::string>(
          names,
          [target, names](const std::string& text) {
            if (!parseBytes(text, target))
              throw CLI::ValidationError(names, "'" + text + "' is not a size such as 8, 64K, 1M or 1G");
          },
          help)
      ->type_name("SIZE");
}

void addSelections(CLI::App& app, Options* o) {
  app.add_option_function<std::string>(
         "-d,--datatype",
         [o](const std::string& name) {
           if (!parseTypes(name, &o->types))
             throw CLI::ValidationError("-d", "'" + name + "' is no data type (try float, or all)");
         },
         "data type, or all")
      ->type_name("TYPE");
  app.add_option_function<std::string>(
         "-o,--op",
         [o](const std::string& name) {
           if (!parseOps(name, &o->ops))
             throw CLI::ValidationError("-o", "'" + name + "' is no reduction (sum prod max min avg all)");
         },
         "reduction: sum prod max min avg all")
      ->type_name("OPERATION");
}

}  // namespace

bool parseOptions(int argc, char** argv, const char* program, Options* o, int* exitCode) {
  CLI::App app{std::string(program) + ": time and verify one collective over a range of sizes", program};
  auto* minimum = addBytes(app, "-b,--minbytes", &o->minBytes, "smallest size (default 32M)");
  auto* maximum = addBytes(app, "-e,--maxbytes", &o->maxBytes, "largest size (default: the smallest)");
  addBytes(app, "-i,--stepbytes", &o->stepBytes, "step when no factor is given (default 1M)");
  app.add_option("-f,--stepfactor", o->stepFactor, "factor between sizes");
  app.add_option("-p,--processes", o->processes, "processes to fork")->check(CLI::Range(1, 1024));
  app.add_option("-t,--nthreads", o->threads, "threads per process")->check(CLI::Range(1, 1024));
  app.add_option("-g,--ngpus", o->gpus, "GPUs per thread")->check(CLI::Range(1, 1024));
  app.add_option("-n,--iters", o->iterations, "timed calls per size")->check(CLI::Range(1, 1 << 20));
  app.add_option("-w,--warmup_iters", o->warmup, "calls before timing")->check(CLI::Range(0, 1 << 20));
  app.add_option("-G,--cudagraph", o->graphLaunches, "capture the timed calls in a CUDA graph and replay it so often")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--repeat", o->repeats, "report the median of this many timings of -n calls")
      ->check(CLI::Range(1, 1000));
  app.add_option("-c,--check", o->check, "verify results: 0 or 1");
  app.add_option("-r,--root", o->root, "root of broadcast, reduce, gather and scatter");
  app.add_option("-a,--average", o->average, "over ranks: 0 rank 0, 1 mean, 2 min, 3 max")->check(CLI::Range(0, 3));
  app.add_flag("-z,--blocking", o->blockingCalls, "wait for each call before the next");
  app.add_flag("--fresh", o->fresh,
               "the device writes the input (zeros) before each timed call, as programs do; the time is of both");
  app.add_option("--json", o->jsonFile, "write results as JSON to this file (- for standard output)")
      ->type_name("FILE");
  addSelections(app, o);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    *exitCode = app.exit(e);
    return false;
  }
  if (maximum->empty()) o->maxBytes = std::max(o->maxBytes, o->minBytes);
  if (maximum->empty() && !minimum->empty()) o->maxBytes = o->minBytes;
  if (o->maxBytes < o->minBytes) o->maxBytes = o->minBytes;
  if (o->root < 0 || o->root >= o->ranks()) {
    std::fprintf(stderr, "%s: -r %d: the root must be one of the %d ranks\n", program, o->root, o->ranks());
    *exitCode = 2;
    return false;
  }
  return true;
}

}  // namespace bench
