#include "bootstrap/link/paced_listener.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "base/log.h"
#include "base/socket/errors.h"

namespace tutti::bootstrap {
namespace {

constexpr int kBatch = 512;
/// After somebody was turned away. Long enough that a thousand strangers a second cost a few hundred wakes at most, and
/// that those who belong here have spoken when they are accepted.
constexpr milliseconds kRest{3};
/// While there are no descriptors: from the first to the longest.
constexpr milliseconds kStarvedRest{50};
constexpr milliseconds kLongestRest{500};
constexpr milliseconds kReportEvery{1000};

}  // namespace

PacedListener::PacedListener(Listener listener, std::string whose, UnprovenPlaces& places, Sieges& sieges)
    : listener_(std::move(listener)), gate_(listener_.fd(), sieges), whose_(std::move(whose)), places_(places) {
  if (!listener_.valid()) return;
  // All that is accepted inherits these.
  makeNonBlocking(listener_.fd());
  setAbrupt(listener_.fd(), true);
  const int on = 1;
  (void)::setsockopt(listener_.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // Who belongs here is not met before its hello. A system without this option is slower in a crowd, no more.
  const int seconds = 1;
  (void)::setsockopt(listener_.fd(), IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds);
}

bool PacedListener::watch(Poller& poller, std::uint64_t name) {
  poller_ = &poller;
  name_ = name;
  return poller.add(listener_.fd(), name);
}

void PacedListener::close() {
  if (poller_ != nullptr && listener_.valid()) poller_->remove(listener_.fd());
  poller_ = nullptr;
  rest_ = Deadline::never();
  listener_.close();
}

/// Whether it was let in. Whoever is about to go again costs no memory.
bool PacedListener::letIn(Socket& socket, const ServerHandshake& server, std::uint32_t maxFrame,
                          std::vector<Arrival>& arrivals) {
  std::array<std::byte, sizeof(Hello)> hello;
  const IoOutcome heard = socket.tryRecv(hello);
  if (!heard.done() && heard.kind != IoOutcome::Kind::WouldBlock) return false;
  const auto first = std::span<const std::byte>(hello).first(heard.bytes);
  if (!ServerHandshake::plausible(first)) return false;
  UnprovenPlaces::Place place;
  if (first.size() < hello.size()) {
    place = places_.take(socket.peer());
    if (!place.taken()) return false;
  }
  Arrival arrival{std::make_unique<Link>(std::move(socket), server, maxFrame), std::move(place)};
  arrival.link->receiveGreeting(first);
  if (arrival.link->end()) return false;
  if (arrival.link->passed()) arrival.place.giveBack();
  if (gate_.everNarrow()) answerEverybody(arrival.link->fd());
  arrivals.push_back(std::move(arrival));
  return true;
}

std::vector<Arrival> PacedListener::take(const Key& key, int serverRank, std::uint32_t maxFrame) {
  std::vector<Arrival> arrivals;
  const ServerHandshake server(key, serverRank);
  const std::uint64_t before = turnedAway_;
  for (int i = 0; i < kBatch && listener_.valid(); ++i) {
    Socket socket;
    const AcceptKind kind = acceptNow(listener_.fd(), &socket);
    if (kind == AcceptKind::NoDescriptors) {
      onStarved(errno);
      break;
    }
    if (kind == AcceptKind::Nothing) break;
    starved_.reset();
    starvedRest_ = milliseconds(0);
    const Address from = socket.peer();
    if (letIn(socket, server, maxFrame, arrivals)) continue;
    ++turnedAway_;
    last_ = from;
  }
  const std::uint64_t strangers = turnedAway_ - before + std::exchange(unproven_, 0);
  if (strangers > 0 && listener_.valid()) gate_.sawStrangers(strangers, server.knock());
  // Behind a narrow gate strangers are few, and those who have knocked are not to wait for them.
  const bool crowd = turnedAway_ > before || places_.crowded();
  if (!starved_ && crowd && gate_.oneIn() == 1) restFor(kRest);
  report();
  return arrivals;
}

void PacedListener::onStarved(int error) {
  if (!starved_) {
    starved_ = SteadyClock::now();
    warn("Bootstrap: {} cannot accept connections at {}: {}{}. Those who wait are accepted when there are some again",
         whose_, listener_.address().text(), errnoText(error), socketRemedy(error));
  }
  starvedRest_ = std::clamp(starvedRest_ * 2, kStarvedRest, kLongestRest);
  restFor(starvedRest_);
}

void PacedListener::restFor(milliseconds span) {
  if (poller_ == nullptr) return;
  if (rest_.isNever()) poller_->remove(listener_.fd());
  rest_ = Deadline::in(span);
}

void PacedListener::tend() {
  if (!listener_.valid()) return;
  gate_.tend();
  if (rest_.isNever() || !rest_.expired() || poller_ == nullptr) return;
  rest_ = Deadline::never();
  (void)poller_->add(listener_.fd(), name_);
}

/// A line a second at most: a flood of strangers is not to be one of lines.
void PacedListener::report() {
  if (turnedAway_ == reported_ || !nextReport_.expired()) return;
  info(kBootstrap, "Bootstrap: {} turned away {} clients that did not prove to be ranks, at last one from {}", whose_,
       turnedAway_ - reported_, last_.hostText());
  reported_ = turnedAway_;
  nextReport_ = Deadline::in(kReportEvery);
}

}  // namespace tutti::bootstrap
