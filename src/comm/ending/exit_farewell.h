// A process that ends by exit() or by leaving main() says goodbye for its communicators.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/clock.h"

struct ncclComm;

namespace tutti::comm {

/// Many programs end without ncclCommDestroy. Where all work is done their peers have nothing to complain of: such a
/// rank leaves in peace, and only who waits for it, or needs it later, is told (comm/ending/departures.h). A process
/// that is killed, that crashes or calls _exit() says nothing, and counts as dead. Any thread.
///
/// In two steps. An exit handler, registered after the driver's and therefore called before it, waits for what was sent
/// to peers. The words themselves come as late as can be, when the library is unloaded: destructors of the
/// application's static objects may still use its communicators, or destroy them.
class ExitFarewell {
 public:
  static ExitFarewell& instance();
  /// How long kernels may take to end; a peer that does not do its part holds up the end of the process so long.
  static constexpr milliseconds kKernels{500};
  /// How long the words may take to leave the process.
  static constexpr milliseconds kWords{1000};

  /// From now on until remove(): `comm` is initialised and has peers.
  void add(ncclComm& comm);
  /// When it returns, nobody looks at `comm` any more. Harmless for one that was never added.
  void remove(ncclComm& comm);

  /// Waits until the work of all of them is done and the network has taken what it sent, with bounds.
  void settle();
  /// Says goodbye for all that are left.
  void say();

 private:
  struct Member {
    ncclComm* comm = nullptr;
    bool settled = false;
    std::uint64_t operations = 0;  ///< launched when it was settled
  };
  static void settle(Member& member, Deadline kernels, Deadline network);
  bool ours() const;

  std::mutex mutex_;  ///< held while waiting: nobody frees what is looked at
  std::vector<Member> members_;
  std::atomic<pid_t> process_{0};  ///< whose end it is: children by fork() are no ranks
};

}  // namespace tutti::comm
