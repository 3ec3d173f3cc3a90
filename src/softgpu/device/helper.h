// Threads that wait for an engine do its work when nobody else does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::softgpu {

class Engine;

/// Gives a processor a moment between two looks at memory.
void relax();

/// What one waiting thread remembers of the process's engines. One thread only, which must not be attending to any.
class Helper {
 public:
  /// Attends once to each busy engine but `self` that nobody attends to: its thread sleeps, or has not looked for some
  /// microseconds though it is not in the middle of something. True if that got anything done. `now`: Engine::now().
  /// Eager: does not wait to see whether its thread looks.
  bool help(const Engine* self, std::int64_t now, bool eager = false);
  /// Wakes the threads of engines that were helped and are still busy. Before the helper turns to something else.
  void leave();

 private:
  struct Seen {
    std::uint32_t looks = 0;
    std::int64_t since = 0;
    bool helped = false;
  };
  Seen& seenOf(std::size_t place);
  static void leaveOne(Seen& seen, std::size_t place);

  std::array<Seen, 8> few_;  ///< by places, the first engines: a short wait should not have to allocate
  std::vector<Seen> more_;   ///< of those after them
};

}  // namespace tutti::softgpu
