#include "bootstrap/link/dial.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <thread>
#include <utility>

#include "base/socket/errors.h"
#include "base/socket/socket.h"

namespace tutti::bootstrap {
namespace {

using Kind = Dialed::Kind;

/// One try to connect takes so long at most, the second twice as long, and so on: a packet that was lost in a crowd is
/// sent again sooner than TCP would.
constexpr milliseconds kTry{500};
/// How often `stop` is asked.
constexpr milliseconds kSlice{100};
/// Between two tries, at most; doubled from try to try.
constexpr milliseconds kFirstPause{8};
constexpr milliseconds kLongestPause{256};
/// A connection that is closed in order after a whole hello: the pass was wrong, or the other side ended at that very
/// moment. The next tries tell.
constexpr int kSureAfter = 3;

class Call {
 public:
  Call(const DialTarget& target, const DialLimits& limits) : target_(target), limits_(limits) {}

  Dialed run() {
    while (!stopped()) {
      Socket socket;
      if (connect(socket) == Step::End) break;
      if (socket.valid() && shakeHands(std::move(socket)) == Step::End) break;
      pause();
    }
    return std::move(result_);
  }

 private:
  enum class Step : std::uint8_t { Again, End };

  bool stopped();
  Step connect(Socket& socket);
  Step shakeHands(Socket socket);
  Step turnedAway(const Link& link);
  void pause();
  Step end(Kind kind, int error = 0) {
    result_.kind = kind;
    result_.error = error;
    return Step::End;
  }

  const DialTarget& target_;
  const DialLimits& limits_;
  Dialed result_;
  milliseconds try_{0};
  milliseconds pause_ = kFirstPause;
  int closedInOrder_ = 0;
  Deadline refusedUntil_ = Deadline::in(limits_.refusals);  ///< of refusals one after the other
};

bool Call::stopped() {
  Status why;
  if (limits_.abort != nullptr && limits_.abort->raised()) why = limits_.abort->status();
  if (why.ok() && limits_.stop) why = limits_.stop();
  if (why.ok()) return false;
  result_.why = why;
  end(Kind::Stopped);
  return true;
}

/// One try. `socket` is set where somebody listens.
Call::Step Call::connect(Socket& socket) {
  try_ += kTry;
  const Deadline until = limits_.listening.earlierOf(limits_.deadline);
  const IoOutcome outcome =
      Socket::tryConnect(target_.at, {until.earlierOf(Deadline::in(try_)), limits_.abort, -1}, &socket);
  if (outcome.done()) return Step::Again;
  if (outcome.kind == IoOutcome::Kind::Aborted) return Step::Again;
  const int error = outcome.kind == IoOutcome::Kind::TimedOut ? ETIMEDOUT : outcome.error;
  // Ports come back; of the other resources of this process there is no telling.
  if (isLocalTrouble(error) && error != EADDRNOTAVAIL) return end(Kind::OwnTrouble, error);
  if (error != ECONNREFUSED) refusedUntil_ = Deadline::in(limits_.refusals);
  if (limits_.refusals > milliseconds(0) && refusedUntil_.expired()) return end(Kind::NobodyListens, error);
  const bool passes = mayComeUpYet(error) || error == EADDRNOTAVAIL;
  return passes && !until.expired() ? Step::Again : end(Kind::NobodyListens, error);
}

Call::Step Call::shakeHands(Socket socket) {
  const ClientHandshake client(target_.key, target_.purpose, target_.clientRank, target_.serverRank);
  auto link = std::make_unique<Link>(std::move(socket), client, target_.maxFrame);
  const auto start = SteadyClock::now();
  const Deadline answer = limits_.deadline.earlierOf(Deadline::in(limits_.answer));
  link->flush();
  while (!link->open() && !link->end()) {
    if (stopped()) return Step::End;
    if (answer.expired()) {
      result_.waited = std::chrono::duration_cast<milliseconds>(SteadyClock::now() - start);
      return end(Kind::Silent);
    }
    const short events = link->wantsWrite() ? POLLIN | POLLOUT : POLLIN;
    (void)pollFd(link->fd(), events, {answer.earlierOf(Deadline::in(kSlice)), nullptr, -1});
    link->flush();
    link->receiveGreeting();
  }
  if (!link->open()) return turnedAway(*link);
  result_.link = std::move(link);
  return end(Kind::Open);
}

Call::Step Call::turnedAway(const Link& link) {
  const Link::End& how = *link.end();
  if (how.kind == Link::End::Kind::Refused) {
    result_.verdict = how.verdict;
    result_.version = how.version;
    return end(Kind::Refused);
  }
  // After a reset that sending has met with, reading finds an end of stream.
  const bool inOrder = how.kind == Link::End::Kind::Closed && how.error == 0 && !link.undelivered();
  closedInOrder_ = inOrder ? closedInOrder_ + 1 : 0;
  if (closedInOrder_ >= kSureAfter) {
    result_.verdict = Verdict::WrongKey;
    return end(Kind::Refused);
  }
  return limits_.deadline.expired() ? end(Kind::TurnedAway, how.error) : Step::Again;
}

/// Clients that were turned away together do not come back together.
void Call::pause() {
  std::uint32_t chance = 0;
  fillRandom(std::as_writable_bytes(std::span(&chance, 1)));
  const milliseconds span(1 + chance % static_cast<std::uint32_t>(pause_.count()));
  std::this_thread::sleep_for(std::min(span, limits_.deadline.remaining()));
  pause_ = std::min(2 * pause_, kLongestPause);
}

}  // namespace

Dialed dial(const DialTarget& target, const DialLimits& limits) {
  return Call(target, limits).run();
}

}  // namespace tutti::bootstrap
