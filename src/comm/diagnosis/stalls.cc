#include "comm/diagnosis/stalls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/connect/awaited_peers.h"
#include "comm/connect/channels.h"
#include "comm/diagnosis/blocked_by.h"
#include "comm/diagnosis/call_log.h"
#include "comm/diagnosis/stall_probe.h"
#include "comm/launch/launch.h"
#include "comm/network/relays.h"
#include "device/kernels/kernel_name.h"
#include "proxy/task.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {

namespace {

/// How long others may take to answer: they look four times a second, and answer once a second.
constexpr milliseconds kAnswers{2000};
/// How long a device may take to copy a few words.
constexpr milliseconds kDeaf{1500};
constexpr milliseconds kFresh{700};
constexpr milliseconds kWatched{2000};
/// How much longer a report waits where other communicators' calls may be in front of the operation, here or on another
/// rank: until these have been still for kCircleSteady, and all ranks of a circle have heard of each other.
constexpr milliseconds kCirclePatience{5000};

}  // namespace

Result<std::unique_ptr<StallProbe>> StallProbe::create(const StallSubject& subject, StallLimits limits) {
  ASSIGN(auto reader, CounterReader::create(subject.device));
  ASSIGN(MovementSweep sweep, MovementSweep::create(subject.device));
  return std::unique_ptr<StallProbe>(std::make_unique<Probe>(subject, limits, std::move(reader), std::move(sweep)));
}

void Probe::tick(Time now, bool kernelsRun) {
  kernelsRun_ = kernelsRun;
  connecting_ = at_.connecting.load();
  const bool busy = kernelsRun_ || connecting_ != nullptr;
  clock_.follow(now, busy);
  owes_ = at_.board.takeAsked() || owes_;
  if (busy) {
    look(now);
  } else {
    rest(now);
  }
}

void Probe::rest(Time now) {
  askedAt_.reset();
  readAt_.reset();
  begunAt_.reset();
  reader_->forget();
  sweep_.reset();
  noteStill(now, false);
  if (owes_ && now - saidAt_ >= kBetweenWords) say(now, false);
  if (!std::exchange(inquired_, false)) return;
  answer_ = underWay();
  answer_.insert(answer_.begin(), headline(state(now)));
}

bool Probe::fresh(Time now) const {
  return readAt_ && now - *readAt_ <= kFresh;
}

bool Probe::watched(Time now) const {
  return watchedAt_ && now - *watchedAt_ <= kWatched;
}

/// Whether an operation that seems to be stalled is: the last launch's connections are not all there are.
bool Probe::confirmed(Time now) {
  if (!clock_.suspects(now)) {
    sweep_.reset();
    return false;
  }
  if (!kernelsRun_ || deaf_) return clock_.stalled(now);
  const auto hasLeft = [&bootstrap = at_.bootstrap](int rank) { return bootstrap.hasLeft(rank); };
  switch (sweep_.follow(now, at_.channels, collNet(), hasLeft, clock_.quiet())) {
    case MovementSweep::State::None:
    case MovementSweep::State::UnderWay:
      return false;
    case MovementSweep::State::Moves:
      sweep_.reset();
      clock_.moved(now);
      return false;
    case MovementSweep::State::Still:
      if (clock_.reported() && !clock_.stalled(now)) sweep_.reset();
      return clock_.stalled(now);
  }
  return false;
}

void Probe::look(Time now) {
  read(now);
  if (owes_ && fresh(now) && now - saidAt_ >= kBetweenWords) say(now, false);
  noteStill(now, confirmed(now));
  const bool wanted = (stalled_ && now >= notBefore_) || inquired_;
  if (!askedAt_) {
    if (wanted && fresh(now)) ask(now);
    return;
  }
  if (!wanted) {
    askedAt_.reset();  // it has moved meanwhile
    return;
  }
  const bool lookedAgain = readAt_ && *readAt_ > *askedAt_;
  if (!inquired_ && mayBeCircle(now)) return;
  if ((answered() && lookedAgain) || now - *askedAt_ >= kAnswers) conclude(now);
}

void Probe::noteStill(Time now, bool stalled) {
  stalled_ = stalled;
  if (!still()) {
    stillSince_.reset();
    circle_ = {};
    circleTold_ = false;
  } else if (!stillSince_) {
    stillSince_ = now;
  }
}

/// Whether somebody may yet find that what stands still does so for other communicators' calls.
bool Probe::mayBeCircle(Time now) const {
  return stalled_ && circle_.several && !circle_.closed && now - *stillSince_ < kCirclePatience;
}

void Probe::heed(const CircleNews& news, Time now) {
  if (!still()) return;
  circle_.several = news.several;
  // What was found stays true as long as nothing moves, whether or not others go on saying their part.
  if (news.text.empty() || (circle_.closed && !news.closed)) return;
  circle_.text = news.text;
  circle_.closed = news.closed;
  if (circle_.closed && clock_.reported() && !circleTold_) tellCircle(now);
}

void Probe::read(Time now) {
  const bool again = askedAt_ && readAt_ && *readAt_ <= *askedAt_;
  const bool wanted = clock_.due(now) || again || watched(now) || ((owes_ || inquired_ || askedAt_) && !fresh(now));
  if (!kernelsRun_) {
    if (wanted) took(now, fingerprintOf({}, std::array{at_.launcher.lastNote().operations}), false);
    return;
  }
  if (begunAt_) {
    switch (reader_->poll()) {
      case CounterReader::State::Done:
        begunAt_.reset();
        return took(now, fingerprint(), false);
      case CounterReader::State::UnderWay:
        if (now - *begunAt_ >= kDeaf) took(now, 0, true);
        return;
      case CounterReader::State::Failed:  // the watch finds out why
      case CounterReader::State::None:
        begunAt_.reset();
        return;
    }
  }
  if (!wanted) return;
  begunAt_ = now;
  reader_->begin(at_.channels, at_.launcher.lastNote(), at_.nRanks,
                 [&bootstrap = at_.bootstrap](int rank) { return bootstrap.hasLeft(rank); });
}

/// Of what moves while kernels run.
std::uint64_t Probe::fingerprint() const {
  const proxy::TaskCounters work = collNet() != nullptr ? collNet()->counters() : proxy::TaskCounters{};
  return fingerprintOf(reader_->ends(),
                       std::array{at_.launcher.lastNote().operations, work.posted, work.done, work.bytes});
}

void Probe::took(Time now, std::uint64_t fingerprint, bool deaf) {
  deaf_ = deaf;
  readAt_ = now;
  clock_.read(now, fingerprint);
}

void Probe::ask(Time now) {
  askedAt_ = now;
  say(now, true);
}

void Probe::say(Time now, bool asks) {
  RankState own = state(now);
  own.asks = asks ? 1 : 0;
  saidAt_ = now;
  owes_ = false;
  at_.bootstrap.announceState(std::as_bytes(std::span(&own, 1)));
}

bool Probe::answered() const {
  const auto answers = at_.board.since(*askedAt_);
  for (int rank = 0; rank < at_.nRanks; ++rank) {
    if (rank == at_.rank || answers.contains(rank)) continue;
    if (!at_.bootstrap.hasLeft(rank)) return false;
  }
  return true;
}

RankState Probe::state(Time now) const {
  const LaunchNote note = at_.launcher.lastNote();
  RankState own;
  own.launched = note.operations;
  own.collectives = at_.calls.called() + at_.calls.begun();
  own.replays = at_.launcher.everCaptured() ? 1 : 0;
  own.forMs = static_cast<std::uint32_t>(std::min<std::int64_t>(clock_.age(now).count(), UINT32_MAX));
  const bool messages = note.nChannels > 0 && note.shape.func == device::Func::SendRecv;
  own.message = messages ? 1 : 0;
  setOperation(own, at_.launcher.lastOperation());
  if (kernelsRun_) {
    own.doing = deaf_ ? RankDoing::Deaf : still() ? RankDoing::Stalled : RankDoing::Running;
  } else if (connecting_ != nullptr) {
    own.doing = RankDoing::Connecting;
    setOperation(own, connecting_);
    own.message = connectsMessages(connecting_) ? 1 : 0;
    noteAwaited(own);
  }
  if (kernelsRun_ && !deaf_ && readAt_) noteWaits(own);
  noteHolds(own);
  return own;
}

void Probe::noteWaits(RankState& own) const {
  std::size_t count = 0;
  for (const EndReading& end : reader_->ends()) {
    const auto wait = waitOf(end);
    if (!wait || !wait->waits) continue;
    const auto known = std::span(own.waitsFor).first(count);
    const auto place = static_cast<std::size_t>(std::find(known.begin(), known.end(), end.peer) - known.begin());
    if (place == RankState::kWaits) continue;
    if (place == count) own.waitsFor[count++] = end.peer;
    if (end.starves) own.starves[place][static_cast<std::size_t>(end.kind)] |= channelBit(end.channel);
  }
}

/// Of a call that waits to be connected.
void Probe::noteAwaited(RankState& own) const {
  std::size_t count = 0;
  for (const LinkRequest& link : at_.awaited.all()) {
    const auto known = std::span(own.waitsFor).first(count);
    if (count < RankState::kWaits && std::find(known.begin(), known.end(), link.peer) == known.end())
      own.waitsFor[count++] = link.peer;
  }
}

/// Also of connections that no kernel uses any more: what they were given may still be under way.
void Probe::noteHolds(RankState& own) const {
  std::vector<RankState::Hold> each;
  for (const ConnectedCounters& end : at_.channels.allEnds()) {
    if (end.task == nullptr || at_.bootstrap.hasLeft(end.peer)) continue;
    const proxy::PendingSend hold = end.task->hold();
    if (hold.blockedBy == proxy::BlockedBy::Nobody) continue;
    each.push_back({end.peer, hold.relay, hold.blockedBy, end.kind, channelBit(end.channel)});
  }
  // Nobody's message: the network itself has what it was given.
  if (const proxy::ProgressTask* const task = collNet(); task != nullptr) {
    each.push_back({at_.rank, -1, task->hold().blockedBy, device::ConnKind::Graph, 0});
  }
  tellHolds(own, each);
}

}  // namespace tutti::comm
