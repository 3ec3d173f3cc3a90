// What a victim does to itself, and when.
#pragma once
#include <atomic>
#include <string_view>

#include "run_options.h"

namespace tutti::adversary {

/// The one deed of this process. All functions: any thread.
class Deeds {
 public:
  /// `rank`: who reports it.
  Deeds(const Deed& deed, int rank) : deed_(deed), rank_(rank) {}

  /// A rank of this process has reached a stage. If that is the deed's, it happens after its delay, on a thread of its
  /// own; once. What only the rank itself can do ("leave", "slow") is left to it: see wantsTo().
  void reached(std::string_view stage, int batch = 0);

  /// Whether the rank itself is to do this here: "leave" (destroy its communicators and end) or "slow" (sleep).
  bool wantsTo(std::string_view how, std::string_view stage, int batch = 0) const;

  long delayUs() const { return deed_.delayUs; }

 private:
  bool here(std::string_view stage, int batch) const;

  Deed deed_;
  int rank_;
  std::atomic<bool> begun_{false};
};

}  // namespace tutti::adversary
