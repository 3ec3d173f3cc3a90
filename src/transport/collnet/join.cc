#include "transport/collnet/join.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "base/threads/shortage.h"
#include "base/threads/thread.h"

namespace tutti::collnet {
namespace {

/// How often a waiting thread looks at the abort.
constexpr milliseconds kLook{10};

/// A call that is being made; the thread that makes it and the one that waits both own it.
class Attempt {
 public:
  explicit Attempt(JoinRequest request) : request_(std::move(request)) {}

  /// On the thread of its own.
  void run() {
    JoinOutcome made{.end = JoinOutcome::End::Returned, .status = Status(ncclSystemError)};
    const ErrorsAsInfo quiet;  // who waits reports it; nobody does once it is abandoned
    ignoringShortage([&] {
      auto connection = request_.network->connect(request_.handles, request_.node, request_.listener);
      made.status = connection.status();
      made.connection = connection.ok() ? connection.value() : nullptr;
      if (!connection.ok()) made.said = lastErrorText();
    });
    if (!hand(made)) giveBack(made.connection);
  }

  /// Waits; the outcome is the caller's then.
  JoinOutcome wait(Deadline deadline, const Abort* abort) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (returned_) return std::move(outcome_);
      const bool aborted = abort != nullptr && abort->raised();
      if (aborted || deadline.expired()) {
        abandoned_ = true;
        return {.end = aborted ? JoinOutcome::End::Aborted : JoinOutcome::End::TooLate};
      }
      over_.wait_for(lock, deadline.remaining(kLook));
    }
  }

 private:
  /// false: nobody wants it any more.
  bool hand(JoinOutcome& made) {
    const std::lock_guard lock(mutex_);
    if (abandoned_) return false;
    outcome_ = std::move(made);
    returned_ = true;
    over_.notify_all();
    return true;
  }
  void giveBack(void* connection) {
    info(kInit | kNet, "COLLNET/{} : connect has returned at last, nobody waits for it any more",
         request_.network->name());
    if (connection != nullptr) request_.network->close(connection).ignore();
    request_.network->closeListen(request_.listener).ignore();
  }

  JoinRequest request_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool returned_ = false;   // guarded by mutex_, as what follows
  bool abandoned_ = false;  ///< by who waited
  JoinOutcome outcome_;
};

}  // namespace

JoinOutcome join(JoinRequest request, Deadline deadline, const Abort* abort) {
  const auto attempt = std::make_shared<Attempt>(std::move(request));
  auto started = Thread::start("CollNetJoin", [attempt] { attempt->run(); });
  if (!started.ok()) return {.status = started.status(), .said = lastErrorText()};
  Thread thread = std::move(started).value();
  JoinOutcome outcome = attempt->wait(deadline, abort);
  if (outcome.end != JoinOutcome::End::Returned) thread.detach();
  return outcome;
}

}  // namespace tutti::collnet
