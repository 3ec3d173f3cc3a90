// Who has left in peace, and saying so of oneself.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "bootstrap/loop/connection_loop.h"

namespace tutti::bootstrap {
namespace {

/// A rank that said goodbye may have sent messages by other ways that are still under way.
constexpr auto kGoodbyeGrace = milliseconds(2000);
/// Messages of one whose process has ended: its sockets are closed, so what it sent is here, or about to come. What it
/// had others pass on, as collectives do, takes its time.
constexpr auto kExitGrace = milliseconds(500);
/// Who is still there then is not about to end with the others, and mends the tree.
constexpr auto kStays = milliseconds(300);

}  // namespace

const int* ConnectionLoop::goneLocked(Channel channel, int peer, Deadline& until) const {
  for (const auto& [rank, leave] : s_.left) {
    // A collective needs everybody, a message only its sender.
    if (channel == Channel::User && rank != peer) continue;
    const Deadline grace =
        Deadline::at(leave.when + (leave.exited && channel == Channel::User ? kExitGrace : kGoodbyeGrace));
    if (grace.expired()) return &rank;
    until = until.earlierOf(grace);
  }
  return nullptr;
}

bool ConnectionLoop::exitedLocked(int rank) const {
  const auto found = s_.left.find(rank);
  return found != s_.left.end() && found->second.exited;
}

bool ConnectionLoop::hasLeft(int rank) const {
  const std::lock_guard lock(mutex_);
  return s_.left.contains(rank);
}

bool ConnectionLoop::hasExited(int rank) const {
  const std::lock_guard lock(mutex_);
  return exitedLocked(rank);
}

std::vector<Departure> ConnectionLoop::takeDepartures() {
  const std::lock_guard lock(mutex_);
  if (s_.stopping || s_.exiting) return {};
  return std::exchange(s_.departures, {});
}

std::string ConnectionLoop::describeDeparture(int rank) const {
  const std::lock_guard lock(mutex_);
  return describeDepartureLocked(rank);
}

std::string ConnectionLoop::describeDepartureLocked(int rank) const {
  return fmt::format(
      "{} {}", describeLocked(rank),
      exitedLocked(rank) ? "has ended its process (exit) without ncclCommDestroy" : "has left the communicator");
}

void ConnectionLoop::sayGoodbye(bool exited, std::span<const std::byte> account) {
  const Farewell head{options_.rank, exited ? 1 : 0};
  Bytes words(sizeof(head) + account.size());
  std::memcpy(words.data(), &head, sizeof(head));
  std::copy(account.begin(), account.end(), words.begin() + sizeof(head));
  const SharedBytes said = std::make_shared<const Bytes>(std::move(words));
  flood(FrameType::Goodbye, 0, said, 0);
  tellPeers(FrameType::Goodbye, said);
}

/// Who has exchanged messages with this rank is likely to share connections with it. Told directly, it hears of the
/// farewell although ranks between the two in the tree have left.
void ConnectionLoop::tellPeers(FrameType type, const SharedBytes& payload) {
  std::set<int> told;
  for (auto& [name, entry] : s_.links) {
    if (entry.role != Role::PeerOut && entry.role != Role::PeerIn) continue;
    if (told.insert(entry.peer).second) sendOn(name, entry, type, 0, payload);
  }
}

void ConnectionLoop::announceExit(std::span<const std::byte> account) {
  const std::lock_guard lock(mutex_);
  // Who has failed has said so already.
  if (s_.stopping || s_.failure || !s_.aborted.ok() || std::exchange(s_.exiting, true)) return;
  sayGoodbye(true, account);
  poller_.wake();
}

bool ConnectionLoop::awaitSaid(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto said = [this] {
    return s_.stopping || std::all_of(s_.links.begin(), s_.links.end(),
                                      [](const auto& named) { return named.second.link->drained(); });
  };
  return changed_.wait_until(lock, deadline.when(), said);
}

void ConnectionLoop::onGoodbye(Name name, Entry& entry, Frame frame) {
  const std::span<const std::byte> words(frame.payload);
  if (words.size() < sizeof(Farewell)) return;
  const auto who = decodeValue<Farewell>(words.first(sizeof(Farewell)));
  if (who->rank < 0 || who->rank >= options_.nRanks) return;
  if (who->rank != entry.peer && !isOfTree(entry.role)) return;  // others come by the tree
  if (who->rank == entry.peer) entry.left = true;
  const auto [known, first] = s_.left.emplace(who->rank, Leave{SteadyClock::now(), who->exited != 0});
  if (first) {
    const auto account = words.subspan(sizeof(Farewell));
    s_.departures.push_back({who->rank, who->exited != 0, {account.begin(), account.end()}});
    s_.departed = true;
    changed_.notify_all();
    s_.mendAt = s_.mendAt.earlierOf(Deadline::in(kStays));
  }
  // What was told directly comes by the tree as well: passed on from both, it would go through the tree once from each
  // rank that was told, and take a crowd of ranks longer than they have for their last words.
  if (!isOfTree(entry.role) || std::exchange(known->second.passedOn, true)) return;
  flood(FrameType::Goodbye, 0, std::make_shared<const Bytes>(std::move(frame.payload)), name);
}

}  // namespace tutti::bootstrap
