// The rounds of a run in the order in which all ranks play them: new ones, and captured ones that come again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "differential/generator.h"

namespace differential {

/// Shared by the threads of a process; the courses of all processes are alike. Any thread.
class Course {
 public:
  struct Turn {
    std::shared_ptr<const Round> round;
    bool last;  ///< it will not come again
  };

  /// Ends when `operations` operations were played, or soon after. `threads`: how many ask for every turn.
  Course(std::uint64_t seed, const Layout& layout, Limits limits, std::size_t operations, int threads);
  /// The turn with this number, or nothing: the end. Each thread asks for all turns in order.
  std::optional<Turn> turn(std::size_t number);

 private:
  Turn makeTurn();

  struct Entry {
    Turn turn;
    int asked;
  };

  std::mutex mutex_;
  Dice dice_;
  Generator generator_;
  std::size_t left_;
  int threads_;
  std::deque<Entry> entries_;
  std::size_t first_ = 0;  ///< number of the first entry
  std::vector<std::shared_ptr<const Round>> kept_;
};

}  // namespace differential
