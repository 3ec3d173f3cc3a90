#include "run_options.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>

namespace tutti::adversary {

namespace {

const std::map<std::string, Policy> kPolicies = {
    {"abort_all", Policy::AbortAll},
    {"abort_failed", Policy::AbortFailed},
    {"destroy", Policy::Destroy},
    {"finalize", Policy::Finalize},
};

bool number(const std::string& text, long& value) {
  char* end = nullptr;
  value = std::strtol(text.c_str(), &end, 10);
  return !text.empty() && *end == '\0';
}

template <typename T>
std::function<bool(const std::string&)> into(T& field) {
  return [&field](const std::string& text) {
    long value = 0;
    if (!number(text, value)) return false;
    field = static_cast<T>(value);
    return true;
  };
}

bool readRanks(const std::string& text, std::vector<int>& ranks) {
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    long rank = 0;
    if (!number(part, rank)) return false;
    ranks.push_back(static_cast<int>(rank));
  }
  return !ranks.empty();
}

/// HOW@STAGE:BATCH+MICROSECONDS
bool readDeed(const std::string& text, Deed& deed) {
  const std::size_t at = text.find('@');
  const std::size_t colon = text.find(':', at);
  const std::size_t plus = text.find('+', colon);
  if (at == std::string::npos || colon == std::string::npos || plus == std::string::npos) return false;
  deed.how = text.substr(0, at);
  deed.stage = text.substr(at + 1, colon - at - 1);
  long batch = 0;
  if (!number(text.substr(colon + 1, plus - colon - 1), batch) || !number(text.substr(plus + 1), deed.delayUs))
    return false;
  deed.batch = static_cast<int>(batch);
  return true;
}

}  // namespace

bool readOptions(int argc, char** argv, RunOptions& options) {
  const std::map<std::string, std::function<bool(const std::string&)>> readers = {
      {"size", into(options.size)},
      {"ranks", [&](const std::string& text) { return readRanks(text, options.ranks); }},
      {"comms", into(options.comms)},
      {"seed", into(options.seed)},
      {"batches", into(options.batches)},
      {"blocking", into(options.blocking)},
      {"policy",
       [&](const std::string& text) {
         const auto found = kPolicies.find(text);
         if (found == kPolicies.end()) return false;
         options.policy = found->second;
         return true;
       }},
      {"ids",
       [&](const std::string& text) {
         options.ids = text;
         return true;
       }},
      {"idle_batch", into(options.idleBatch)},
      {"idle_ms", into(options.idleMs)},
      {"patience_ms", into(options.patienceMs)},
      {"report", into(options.report)},
      {"threads", into(options.threads)},
      {"few_kernels", into(options.fewKernels)},
      {"lies", into(options.lies)},
      {"deed", [&](const std::string& text) { return readDeed(text, options.deed); }},
  };
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = argument.find('=');
    const auto reader = readers.find(argument.substr(0, equals));
    if (equals == std::string::npos || reader == readers.end() || !reader->second(argument.substr(equals + 1))) {
      std::fprintf(stderr, "adversary_rank: %s is not understood\n", argv[i]);
      return false;
    }
  }
  return !options.ranks.empty();
}

}  // namespace tutti::adversary
