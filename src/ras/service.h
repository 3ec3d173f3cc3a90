// The thread that answers clients and other processes of the job.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/threads/thread.h"
#include "bootstrap/link/poller.h"
#include "ras/client/clients.h"
#include "ras/network/network.h"
#include "ras/registry.h"

namespace tutti::ras {

/// What a service is made from.
struct ServiceOptions {
  Listener clients;  ///< may be invalid: nobody asks this process, but others are answered
  Listener network;
  Member self;
  Timers timers;
  LibraryFacts library;
};

/// Reports on the job, and does nothing to it. Waits for nobody but in its own poll; what goes wrong inside ends the
/// service, not the process. Any thread.
class Service {
 public:
  /// Errors: ncclSystemError. `registry` outlives it.
  static Result<std::unique_ptr<Service>> start(ServiceOptions options, const Registry& registry);
  ~Service() { stop(Deadline::in(milliseconds(0))); }

  /// Processes that this one has met in a communicator, and its own devices. Does not wait.
  void add(std::vector<Member> members);
  /// Says goodbye to the other processes until `deadline`, and ends.
  void stop(Deadline deadline);

 private:
  Service(ServiceOptions options, const Registry& registry, bootstrap::Poller poller);

  void run();
  void loop();
  void takeInbox();
  void serveClients();
  void beginTexts();
  void beginReports();
  void giveReports();
  void sayGoodbye();
  Deadline nextDeadline();

  bootstrap::Poller poller_;
  const LibraryFacts library_;
  Clients clients_;
  Network network_;

  std::mutex mutex_;  ///< of inbox_, stopBy_
  std::vector<Member> inbox_;
  Deadline stopBy_ = Deadline::never();
  std::atomic<bool> stopping_{false};
  Thread thread_;
};

}  // namespace tutti::ras
