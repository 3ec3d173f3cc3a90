// The tree of connections, whole again where ranks have left it while others stay.
//
// Announcements, signs of life and word of deaths travel in a tree of all ranks. When one that has others below it
// leaves, they find another parent: the nearest rank above them that is there, or else the lowest rank of all
// (livingParent()). They call it; a rank that should be called and is not, for instance since the other one is stopped,
// calls itself, and tells all others of those that do not answer.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>

#include "base/clock.h"
#include "base/ranks/abort.h"
#include "base/threads/thread.h"
#include "bootstrap/link/dial.h"

namespace tutti::bootstrap {

struct Joined;

/// Of one rank. Its thread runs from the first time on that it is needed.
class TreeRepair {
 public:
  /// `joined` must outlive it.
  TreeRepair(const Joined& joined, int nRoots);
  TreeRepair(const TreeRepair&) = delete;
  ~TreeRepair() { stop(); }

  /// Ranks have left. Does not wait. Any thread.
  void begin();
  /// Ends within a tenth of a second. Idempotent.
  void stop();

 private:
  void run();
  void mend();
  void findParent();
  void callChildren();
  /// Who is to call this rank, and has not yet.
  std::set<int> missingChildren() const;
  Dialed call(int peer) const;
  /// False when it is to stop.
  bool rest(milliseconds span);
  bool over() const;

  const Joined& joined_;
  const int nRoots_;
  Abort stop_;  ///< raised once
  std::mutex mutex_;
  std::condition_variable changed_;
  bool needed_ = false;
  std::set<int> gone_;  ///< who does not listen any more; the thread's
  Thread thread_;
};

}  // namespace tutti::bootstrap
