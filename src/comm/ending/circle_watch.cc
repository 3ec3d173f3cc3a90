#include "comm/ending/circle_watch.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/host.h"
#include "bootstrap/bootstrap.h"
#include "comm/diagnosis/call_exchange.h"
#include "comm/diagnosis/stall_state.h"
#include "comm/diagnosis/stalls.h"
#include "comm/launch/launch.h"
#include "comm/launch/launch_marks.h"
#include "comm/state/communicator.h"
#include "topo/machine/peer_info.h"

namespace tutti::comm {

namespace {

using Place = CommStanding::Place;

/// What has changed is said so soon after the last word, and what has not so soon that it stays fresh.
constexpr milliseconds kBetweenWords{500};
constexpr milliseconds kAgain{1500};
/// For how long, from the first word or the last question on: whoever looks for circles has found one by then.
constexpr std::chrono::seconds kSpeakFor{60};
/// Of a line of the log, beside who says it.
constexpr std::size_t kTextRoom = 860;

bool looksAt(const ncclComm& comm) {
  return comm.parts.stalls != nullptr && !comm.abort.raised();
}

/// Whether anybody's operation does not move, here or, as one has asked, elsewhere.
bool anyStands(std::span<ncclComm* const> comms, CircleWatch::Time now) {
  return std::any_of(comms.begin(), comms.end(), [now](const ncclComm* comm) {
    return looksAt(*comm) && (comm->parts.stalls->suspects(now) || now - comm->stalls->askedAt() < kSpeakFor);
  });
}

NamedRank named(const ncclComm& comm, int rank) {
  const topo::PeerInfo& peer = comm.parts.peers[static_cast<std::size_t>(rank)];
  return {rank, peer.cudaDevice, peer.pid, peer.hostName.data()};
}

bool severalOnDevice(const ncclComm& comm) {
  LaunchMarks* const marks = comm.parts.launcher->marks();
  return marks != nullptr && marks->severalHere();
}

void describeCall(CommStanding& standing, Place place, const LaunchedCall& call) {
  standing.place = place;
  standing.number = call.number;
  standing.function = static_cast<ApiFunc>(call.function);
  standing.messages = call.messages;
}

void describeFront(CommStanding& standing, const LaunchMarks::Front& front) {
  using State = LaunchMarks::Front::State;
  if (front.state != State::Begun && front.state != State::Queued) return;
  describeCall(standing, front.state == State::Begun ? Place::Waits : Place::Blocked, front.call);
  standing.order = front.order;
  standing.stream = reinterpret_cast<std::uintptr_t>(front.stream);
}

void describeRunning(CommStanding& standing, const ncclComm& comm) {
  if (LaunchMarks* const marks = comm.parts.launcher->marks()) describeFront(standing, marks->front());
}

void describeConnecting(CommStanding& standing, const ncclComm& comm) {
  const CallLog& calls = comm.calls->log();
  const std::uint16_t call = comm.progress.connectingCall.load();
  describeCall(standing, Place::Waits,
               {calls.called() + calls.begun(), static_cast<std::uint8_t>(call & 0xff),
                (call & CommProgress::kMessagesAlone) != 0});
  standing.onHost = true;
}

CommStanding standingOf(const ncclComm& comm, CircleWatch::Time now) {
  CommStanding standing;
  standing.comm = comm.identity.commId;
  standing.self = named(comm, comm.identity.rank);
  standing.thread = comm.progress.caller.load(std::memory_order_relaxed);
  standing.words = comm.circles->since(now - kCircleFresh);
  standing.describe = [&comm](int rank) { return named(comm, rank); };
  const RankState state = comm.parts.stalls->standing(now);
  for (const int rank : state.waitsFor) {
    if (rank >= 0) standing.waitsFor.push_back(rank);
  }
  switch (state.doing) {
    case RankDoing::Idle:
      standing.place = Place::Absent;
      standing.number = comm.calls->log().called() + 1;
      break;
    case RankDoing::Connecting:
      describeConnecting(standing, comm);
      break;
    case RankDoing::Running:
    case RankDoing::Stalled:
    case RankDoing::Deaf:
      describeRunning(standing, comm);
      break;
  }
  return standing;
}

}  // namespace

void CircleWatch::settle(CommStanding& standing, ncclComm& comm, Time now) {
  Kept& kept = kept_[&comm];
  const bool same = kept.comm == standing.comm && kept.place == standing.place && kept.number == standing.number &&
                    kept.order == standing.order;
  if (!same) kept = {standing.comm, standing.place, standing.number, standing.order, now, std::nullopt, {}, {}};
  const bool asked = now - comm.stalls->askedAt() < kSpeakFor;
  const bool minded = standing.place == Place::Absent ? asked : comm.parts.stalls->still();
  standing.steady = minded && now - kept.since >= kCircleSteady;
}

/// A rank before this one has said that its part of the same collective is in a circle: whoever waits for this one
/// waits for that one as well.
bool CircleWatch::isSaidByOthers(const CommStanding& standing, const CircleWord& word) const {
  return std::any_of(standing.words.begin(), standing.words.end(), [&](const auto& one) {
    return one.first < standing.self.rank && one.second.word.closed != 0 && word.number != 0 &&
           one.second.word.number == word.number;
  });
}

void CircleWatch::say(std::span<const CommStanding> all, std::size_t which, ncclComm& comm, Time now) {
  const std::optional<CircleWord> word = circleWord(all, which, now);
  if (!word || isSaidByOthers(all[which], *word)) return;
  Kept& kept = kept_[&comm];
  if (!kept.said) kept.firstSaidAt = now;
  if (now - std::max(kept.firstSaidAt, comm.stalls->askedAt()) > kSpeakFor) return;
  const bool news = !kept.said || !sameCircleWord(*kept.said, *word);
  if (kept.said && now - kept.saidAt < (news ? kBetweenWords : kAgain)) return;
  kept.said = word;
  kept.saidAt = now;
  comm.parts.bootstrap->announceState(std::as_bytes(std::span(&*word, 1)));
}

void CircleWatch::tick(std::span<ncclComm* const> comms, Time now) {
  std::erase_if(kept_,
                [comms](const auto& one) { return std::find(comms.begin(), comms.end(), one.first) == comms.end(); });
  if (!anyStands(comms, now)) return;
  std::vector<ncclComm*> looked;
  std::copy_if(comms.begin(), comms.end(), std::back_inserter(looked), [](const ncclComm* c) { return looksAt(*c); });
  std::vector<CommStanding> all;
  for (ncclComm* const comm : looked) {
    all.push_back(standingOf(*comm, now));
    settle(all.back(), *comm, now);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    say(all, i, *looked[i], now);
    if (!looked[i]->parts.stalls->still()) continue;
    const CirclePath path = followCircle(all, i, now);
    looked[i]->parts.stalls->heed({.several = severalOnDevice(*looked[i]) || !all[i].words.empty(),
                                   .closed = path.closed,
                                   .text = describeCircle(all[i], path, kTextRoom)},
                                  now);
  }
}

}  // namespace tutti::comm
