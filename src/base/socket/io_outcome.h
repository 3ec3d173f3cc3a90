// How an input or output on a socket ended, as a value.
#pragma once

#include <cstddef>

namespace tutti {

/// How an input or output ended. Nothing is logged: whoever expects strangers asks for this one.
struct IoOutcome {
  enum class Kind { Done, WouldBlock, Closed, TimedOut, Aborted, Failed };
  Kind kind = Kind::Done;
  std::size_t bytes = 0;  ///< moved, also where it ended badly
  int error = 0;          ///< errno where Failed
  bool done() const { return kind == Kind::Done; }
};

}  // namespace tutti
