#include "ras/network/gather.h"

#include <utility>

namespace tutti::ras {

namespace {

/// So many are asked at once, and those count that were asked just now: who is stopped does not keep others from being
/// asked.
constexpr std::size_t kMostFresh = 64;
constexpr milliseconds kFresh{200};
constexpr std::size_t kMostAsked = 512;
/// A listener among strangers may turn a client away that belongs to it.
constexpr int kMostTries = 5;
constexpr milliseconds kPause{50};

}  // namespace

void Gather::begin(Answer own, SteadyClock::time_point now) {
  cancel();
  running_ = true;
  since_ = now;
  answers_.clear();
  for (const Member* const member : members_.successors()) {
    legs_.try_emplace(member->facts.id, Leg{State::Waiting, 0, 0, now});
  }
  open_ = legs_.size();
  answers_.emplace(members_.self().facts.id, std::move(own));
  tend(now);
}

void Gather::cancel() {
  for (const auto& [id, leg] : legs_) links_.erase(leg.link);
  legs_.clear();
  running_ = false;
  open_ = 0;
}

void Gather::settle(Leg& leg, State state) {
  if (leg.state == State::Waiting || leg.state == State::Asked) --open_;
  leg.state = state;
}

void Gather::ask(ProcessId id, Leg& leg, SteadyClock::time_point now) {
  const Member* const member = members_.find(id);
  Peer& peer = links_.add(PeerLink(member->facts.address, member->key), Role::Leg, id);
  peer.link.send(Message::Query, {});
  leg.state = State::Asked;
  leg.link = peer.name;
  leg.from = now;
  ++leg.tries;
}

void Gather::tend(SteadyClock::time_point now) {
  if (!running_) return;
  std::size_t fresh = 0;
  std::size_t asked = 0;
  for (const auto& [id, leg] : legs_) {
    if (leg.state != State::Asked) continue;
    ++asked;
    if (now - leg.from < kFresh) ++fresh;
  }
  for (auto& [id, leg] : legs_) {
    if (fresh >= kMostFresh || asked >= kMostAsked) return;
    if (leg.state != State::Waiting || now < leg.from) continue;
    ask(id, leg, now);
    ++fresh;
    ++asked;
  }
}

bool Gather::take(const Peer& peer, std::span<const std::byte> payload) {
  const auto leg = legs_.find(peer.process);
  if (leg == legs_.end() || leg->second.link != peer.name || leg->second.state != State::Asked) return false;
  std::optional<Answer> answer = decodeAnswer(payload, peer.process);
  if (!answer) return false;
  answers_[peer.process] = std::move(*answer);
  settle(leg->second, State::Answered);
  return true;
}

void Gather::ended(const Peer& peer, SteadyClock::time_point now) {
  const auto found = legs_.find(peer.process);
  if (found == legs_.end() || found->second.link != peer.name) return;
  Leg& leg = found->second;
  leg.link = 0;
  if (leg.state != State::Asked) return;
  if (peer.link.refused() || peer.wasOpen || leg.tries >= kMostTries) return settle(leg, State::Failed);
  leg.state = State::Waiting;
  leg.from = now + kPause;
}

void Gather::forget(ProcessId id) {
  const auto found = legs_.find(id);
  if (found != legs_.end()) settle(found->second, State::Failed);
}

std::vector<ProcessId> Gather::silent() const {
  std::vector<ProcessId> list;
  for (const auto& [id, leg] : legs_) {
    if (leg.state != State::Answered) list.push_back(id);
  }
  return list;
}

}  // namespace tutti::ras
