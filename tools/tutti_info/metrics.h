// tutti-info metrics, tutti-info top: what running processes do.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::tool {

/// One line of the text form of Prometheus.
struct Sample {
  std::string name;
  std::map<std::string, std::string, std::less<>> labels;
  double value = 0;

  /// "" where there is no such label.
  std::string_view label(std::string_view of) const;
};

/// The samples of a text. Lines that are none are left out.
std::vector<Sample> parseSamples(std::string_view text);

/// Texts of several processes as one: what is said of a metric stands once, in front of all its samples.
std::string joinMetrics(const std::vector<std::string>& texts);

/// The table of `top`: a line for each rank of a communicator. `before` and `now`: samples `seconds` apart; rates come
/// from both, the rest from `now`.
std::string topTable(const std::vector<Sample>& before, const std::vector<Sample>& now, double seconds);

struct MetricsOptions {
  std::vector<int> pids;  ///< empty: all processes of this user that use tutti
  int port = -1;          ///< where to serve, on loopback; -1: print once; 0: the system chooses
};
/// Exit status. Errors go to standard error.
int printMetrics(const MetricsOptions& options);

struct TopOptions {
  std::vector<int> pids;
  double seconds = 1;  ///< between two looks
  int rounds = 0;      ///< 0: until it is ended
};
int showTop(const TopOptions& options);

}  // namespace tutti::tool
