// Questions to running processes of tutti, at their local sockets.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::tool {

struct Answer {
  bool ok = false;
  std::string text;  ///< the answer, or why there is none
};

/// What process `pid` answers about `topic`. Waits `patience` at most.
Answer askProcess(std::string_view topic, int pid, std::chrono::milliseconds patience);

/// The processes that answer about `topic` in this network namespace, of all users, in order.
std::vector<int> processesThatAnswer(std::string_view topic);

}  // namespace tutti::tool
