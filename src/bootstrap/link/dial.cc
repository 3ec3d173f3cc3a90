#include "bootstrap/link/dial.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <span>
#include <thread>
#include <utility>

#include "base/socket/errors.h"
#include "base/socket/socket.h"

namespace tutti::bootstrap {
namespace {

using Kind = Dialed::Kind;

/// A try to connect takes so long at first: who is not answered by then may have come to a gate (gate.h), and knocks.
constexpr milliseconds kFirstTry{2};
/// That one takes so long at most, the next twice as long, and so on: a packet that was lost in a crowd is sent again
/// sooner than TCP would. Every other one knocks, for there are networks that lose packets that do.
constexpr milliseconds kTry{500};
/// The same where this system cannot knock: then it is luck, and many tries have more of it.
constexpr milliseconds kShortTry{20};
/// How often `stop` is asked.
constexpr milliseconds kSlice{100};
/// Between two tries, at most; doubled from try to try.
constexpr milliseconds kFirstPause{8};
constexpr milliseconds kLongestPause{256};
/// A connection that is closed in order after a whole hello: the pass was wrong, or the other side ended at that very
/// moment. The next tries tell.
constexpr int kSureAfter = 3;

/// When this process was last answered only after it had knocked: who has met one gate is likely to meet the next.
constexpr auto kMemory = std::chrono::seconds(10);
std::atomic<SteadyClock::time_point> lastGate{SteadyClock::time_point()};

class Call {
 public:
  Call(const DialTarget& target, const DialLimits& limits) : target_(target), limits_(limits) {}

  Dialed run() {
    while (!stopped()) {
      const ClientHandshake client(target_.key, target_.purpose, target_.clientRank, target_.serverRank);
      if (connect(client) == Step::End) break;
      if (socket_.valid() && shakeHands(client) == Step::End) break;
      if (unanswered_ == 0) pause();
    }
    return std::move(result_);
  }

 private:
  enum class Step : std::uint8_t { Again, End };

  bool stopped();
  Step connect(const ClientHandshake& client);
  IoOutcome connectOnce(const ClientHandshake& client, const Wait& wait);
  milliseconds tryTime() const;
  Step shakeHands(const ClientHandshake& client);
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
  Socket socket_;         ///< valid where somebody listens
  std::size_t said_ = 0;  ///< bytes of the hello that are under way on it
  int unanswered_ = 0;    ///< tries to connect, one after the other
  bool canKnock_ = true;  ///< this system, as far as is known
  bool knocks_ = SteadyClock::now() - lastGate.load() < kMemory;
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

IoOutcome Call::connectOnce(const ClientHandshake& client, const Wait& wait) {
  said_ = 0;
  if (!knocks_) return Socket::tryConnect(target_.at, wait, &socket_);
  const auto hello = std::as_bytes(std::span(&client.hello(), 1));
  const IoOutcome outcome = Socket::tryKnock(target_.at, wait, hello, &socket_, &said_);
  canKnock_ = said_ > 0;
  if (canKnock_ && unanswered_ > 0 && outcome.done()) lastGate.store(SteadyClock::now());
  return outcome;
}

milliseconds Call::tryTime() const {
  if (unanswered_ == 0 && !knocks_) return kFirstTry;
  return canKnock_ ? std::max(unanswered_, 1) * kTry : unanswered_ * kShortTry;
}

/// One try. `socket_` is valid afterwards where somebody listens.
Call::Step Call::connect(const ClientHandshake& client) {
  socket_.close();
  const Deadline until = limits_.listening.earlierOf(limits_.deadline);
  const IoOutcome outcome = connectOnce(client, {until.earlierOf(Deadline::in(tryTime())), limits_.abort, -1});
  const bool unanswered = outcome.kind == IoOutcome::Kind::TimedOut;
  unanswered_ = unanswered ? unanswered_ + 1 : 0;
  knocks_ = canKnock_ && knocks_ != unanswered;
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

Call::Step Call::shakeHands(const ClientHandshake& client) {
  auto link = std::make_unique<Link>(std::move(socket_), client, target_.maxFrame, said_);
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
