// The faults that a test plugin was told to commit.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace tutti::test {

/// Parsed from the environment at the first init; test_net.h has the grammar.
class TestNetFaults {
 public:
  void read(int version) {
    if (read_) return;
    read_ = true;
    const std::string own = "TEST_NET_FAULT_V" + std::to_string(version);
    const char* text = std::getenv(own.c_str());
    if (text == nullptr) text = std::getenv("TEST_NET_FAULT");
    std::string_view rest = text != nullptr ? text : "";
    if (const char* stall = std::getenv("TEST_NET_STALL")) {
      const std::string_view words = stall;
      stalledTag_ = std::atoi(stall);
      stallFile_ = words.substr(std::min(words.find(':'), words.size() - 1) + 1);
    }
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      add(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  bool has(const char* name) const { return faults_.contains(name); }
  /// The number behind '=', or 0.
  long value(const char* name) const {
    const auto found = faults_.find(name);
    return found == faults_.end() ? 0 : found->second.value;
  }
  /// Whether messages with that tag have no room just now.
  bool stalls(int tag) const { return tag == stalledTag_ && ::access(stallFile_.c_str(), F_OK) == 0; }
  /// Counts an occasion for a fault; whether it strikes.
  bool strikes(const char* name) {
    const auto found = faults_.find(name);
    return found != faults_.end() && found->second.seen.fetch_add(1) >= found->second.after;
  }

 private:
  struct Fault {
    long after = 0;
    long value = 0;
    std::atomic<long> seen{0};
  };

  void add(std::string_view word) {
    const std::size_t end = std::min(word.find_first_of("@="), word.size());
    Fault& fault = faults_[std::string(word.substr(0, end))];
    if (end == word.size()) return;
    (word[end] == '@' ? fault.after : fault.value) = std::atol(std::string(word.substr(end + 1)).c_str());
  }

  bool read_ = false;
  int stalledTag_ = -1;
  std::string stallFile_;
  std::map<std::string, Fault, std::less<>> faults_;
};

}  // namespace tutti::test
