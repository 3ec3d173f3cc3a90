#include "ras/network/network.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/log.h"
#include "ras/network/compose.h"

namespace tutti::ras {

namespace {

using bootstrap::Frame;

constexpr int kServerRank = 0;
/// Connections that others have opened, at most.
constexpr std::size_t kMostLinks = 4096;
/// Two keep-alives tell that tables differ for longer than news take.
constexpr int kDifferences = Peer::kPatience;
constexpr int kMostDifferences = 64;
/// How long a connection that is not needed any more may take to say so.
constexpr milliseconds kParting{1000};
/// While answers are waited for.
constexpr milliseconds kSurveyTick{20};
/// Up to so many ranks all tell who belongs to their communicator.
constexpr std::int32_t kFewRanks = 64;

/// In large communicators all would be too much. Whichever ranks have given theirs up, others should tell.
bool tellsMembers(const CommFacts& comm) {
  if (comm.size <= kFewRanks) return true;
  return std::any_of(comm.ranks.begin(), comm.ranks.end(), [](const RankFacts& rank) {
    return rank.rank == 0 || std::has_single_bit(static_cast<std::uint32_t>(rank.rank));
  });
}

}  // namespace

Network::Network(bootstrap::Poller& poller, Listener listener, Member self, const Timers& timers, NetworkHooks hooks)
    : timers_(timers),
      hooks_(std::move(hooks)),
      members_(std::move(self)),
      listener_(std::move(listener), "the RAS thread"),
      reporter_(members_, hooks_.happened),
      links_(poller, kFirstName),
      watch_(members_, links_, timers_, reporter_, [this](ProcessId id) { setState(id, ProcessState::Dead); }),
      gather_(members_, links_),
      farewell_(members_, links_) {
  if (!listener_.watch(poller, kFirstName)) info(kRas, "RAS: the system cannot watch the listening socket");
}

void Network::add(std::span<const Member> members) {
  for (const Member& member : members) learn(member);
  spreadNews();
}

void Network::learn(const Member& news) {
  const auto change = members_.merge(news);
  if (!change) return;
  const ProcessId id = news.facts.id;
  news_.insert(id);
  if (id == members_.self().facts.id) return;
  if (change->fresh) reporter_.say(EventKind::PeerNew, id);
  if (!change->state) return;
  gather_.forget(id);
  reporter_.say(news.facts.state == ProcessState::Dead ? EventKind::PeerDead : EventKind::PeerLeft, id);
}

void Network::setState(ProcessId id, ProcessState state) {
  const Member* const known = members_.find(id);
  if (known == nullptr) return;
  Member news = *known;
  news.facts.state = state;
  learn(news);
}

void Network::sendTable(Peer& peer, std::span<const Member* const> members) {
  peer.link.send(Message::Table, encodeTable(members, peer.link.key()));
  links_.settle(peer);
}

/// Who cannot be told just now finds out by the hashes in keep-alives.
void Network::spreadNews() {
  if (news_.empty()) return;
  std::vector<const Member*> members;
  for (const ProcessId id : news_) members.push_back(members_.find(id));
  news_.clear();
  links_.forEach([&](Peer& peer) {
    const bool told = peer.role != Role::Leg && peer.process != 0 && peer.link.open() && !peer.parting;
    if (told && peer.link.drained()) sendTable(peer, members);
  });
}

void Network::welcome() {
  for (bootstrap::Arrival& arrival : listener_.take(members_.self().key, kServerRank, kMaxMessage)) {
    letIn(std::move(arrival));
  }
}

void Network::letIn(bootstrap::Arrival arrival) {
  if (links_.size() >= kMostLinks) return;
  advance(links_.add(PeerLink(std::move(arrival), members_.self().key), Role::Inbound, 0));
}

void Network::onEvent(const bootstrap::Poller::Event& event) {
  if (event.name == kFirstName) {
    welcome();
  } else if (Peer* const peer = links_.find(event.name); peer != nullptr) {
    advance(*peer);
  }
  spreadNews();
  reap();
}

void Network::advance(Peer& peer) {
  peer.link.advance();
  const auto now = SteadyClock::now();
  if (peer.link.open() && !peer.wasOpen) {
    peer.wasOpen = true;
    peer.since = now;
    if (peer.role == Role::Watch) {
      watch_.heard(peer, now);
      reporter_.say(EventKind::PeerConnected, peer.process);
    }
  }
  // What was said before the end counts.
  const bool over = peer.link.ended();
  for (const Frame& frame : peer.link.frames()) {
    peer.heard = now;
    if (peer.role == Role::Watch) watch_.heard(peer, now);
    if (!handle(peer, frame)) {
      info(kRas, "RAS: {} sent what makes no sense: the connection is closed", peer.link.peer().text());
      return peer.link.close("sent what makes no sense");
    }
    if (!over && peer.link.ended()) return;
  }
  links_.settle(peer);
}

bool Network::handle(Peer& peer, const Frame& frame) {
  if (frame.type() != bootstrap::FrameType::Ras) return false;
  const auto message = static_cast<Message>(frame.header.op);
  if (peer.role == Role::Leg) {
    if (message != Message::Answer || !gather_.take(peer, frame.payload)) return false;
    peer.link.close("answered");
    return true;
  }
  switch (message) {
    case Message::Intro:
      return peer.role == Role::Inbound && peer.process == 0 && onIntro(peer, frame.payload);
    case Message::KeepAlive:
      return peer.process != 0 && onKeepAlive(peer, frame.payload);
    case Message::Table:
      return peer.process != 0 && onTable(peer, frame.payload);
    case Message::Query:
      return peer.role == Role::Inbound && onQuery(peer);
    case Message::Goodbye:
      return peer.process != 0 && onTable(peer, frame.payload) && onGoodbye(peer);
    case Message::Rewire:
      peer.parting = true;
      peer.link.close("not needed any more");
      return true;
    case Message::Heard:
      return farewell_.heard(peer);
    case Message::Answer:
      break;
  }
  return false;
}

bool Network::onIntro(Peer& peer, std::span<const std::byte> payload) {
  const auto members = decodeTable(payload, members_.self().key);
  if (!members || members->size() != 1 || members->front().facts.id == members_.self().facts.id) return false;
  const Member& client = members->front();
  reporter_.say(EventKind::PeerConnecting, peer.link.peer());
  const bool known = members_.find(client.facts.id) != nullptr;
  learn(client);
  if (members_.find(client.facts.id) == nullptr || members_.find(client.facts.id)->facts.state != ProcessState::Alive) {
    peer.link.close("considered dead");
    return true;
  }
  peer.process = client.facts.id;
  reporter_.say(EventKind::PeerConnected, peer.process);
  if (farewell_.begun()) farewell_.tell(peer);
  // They have met nobody in common.
  if (!known) sendTable(peer, members_.all());
  return true;
}

bool Network::onKeepAlive(Peer& peer, std::span<const std::byte> payload) {
  ByteReader in(payload);
  const auto hash = in.take<std::uint64_t>();
  if (!in.done()) return false;
  peer.differences = hash == members_.hash() ? 0 : peer.differences + 1;
  if (peer.differences == 0) peer.patience = kDifferences;
  if (!peer.link.drained()) return true;
  if (peer.differences >= peer.patience) {
    peer.differences = 0;
    // Where they contradict each other that does not help for ever.
    peer.patience = std::min(2 * peer.patience, kMostDifferences);
    sendTable(peer, members_.all());
  }
  if (peer.role != Role::Inbound) return true;
  ByteWriter out;
  out.put(members_.hash());
  peer.link.send(Message::KeepAlive, out.take());
  return true;
}

bool Network::onTable(Peer& peer, std::span<const std::byte> payload) {
  const auto members = decodeTable(payload, peer.link.key());
  if (!members) return false;
  for (Member news : *members) {
    // Whom this process hears lives, whatever others say.
    bool heard = false;
    links_.forEach([&](const Peer& other) {
      heard |= other.process == news.facts.id && other.link.open() && SteadyClock::now() - other.heard < timers_.warn;
    });
    if (heard && news.facts.state == ProcessState::Dead) news.facts.state = ProcessState::Alive;
    learn(news);
  }
  return true;
}

bool Network::onQuery(Peer& peer) {
  if (!peer.link.drained()) return false;
  peer.link.send(Message::Answer, encodeAnswer(ownAnswer()));
  return true;
}

bool Network::onGoodbye(Peer& peer) {
  peer.parting = true;
  setState(peer.process, ProcessState::Left);
  if (!farewell_.begun()) peer.link.send(Message::Heard, {});
  peer.link.close("left");
  return true;
}

Answer Network::ownAnswer() const {
  Answer answer{watch_.unresponsive(), hooks_.comms()};
  for (CommFacts& comm : answer.comms) {
    if (!tellsMembers(comm)) comm.members.reset();
  }
  return answer;
}

void Network::reap() {
  const auto now = SteadyClock::now();
  std::vector<std::uint64_t> names;
  links_.forEach([&](Peer& peer) {
    if (peer.parting && !peer.link.ended() && (peer.link.drained() || now - peer.since > kParting)) {
      peer.link.close("not needed any more");
    }
    if (peer.link.ended()) names.push_back(peer.name);
  });
  for (const std::uint64_t name : names) {
    const Peer& peer = *links_.find(name);
    if (peer.role == Role::Watch) watch_.ended(peer, now);
    if (peer.role == Role::Leg) gather_.ended(peer, now);
    if (peer.role == Role::Inbound && peer.process != 0 && !peer.parting) {
      reporter_.say(EventKind::PeerDisconnected, peer.process, peer.link.why());
    }
    if (peer.role == Role::Inbound && !peer.wasOpen) listener_.sawStranger();
    farewell_.ended(peer);
    links_.erase(name);
  }
}

void Network::closeIdle(SteadyClock::time_point now) {
  links_.forEach([&](Peer& peer) {
    if (peer.role != Role::Inbound) return;
    const bool unproven = !peer.wasOpen && now - peer.since > kUnprovenTime;
    if (unproven || now - peer.heard > timers_.idle) peer.link.close("nothing heard");
  });
}

void Network::tend() {
  const auto now = SteadyClock::now();
  listener_.tend();
  closeIdle(now);
  if (farewell_.begun()) {
    farewell_.tend();
  } else {
    watch_.tend(now);
    gather_.tend(now);
  }
  spreadNews();
  reap();
}

Deadline Network::next() const {
  const Deadline tick = Deadline::in(gather_.running() && !gather_.done() ? kSurveyTick : timers_.keepAlive / 2);
  return tick.earlierOf(listener_.next());
}

void Network::beginSurvey() {
  gather_.begin({watch_.unresponsive(), hooks_.comms()}, SteadyClock::now());
  reap();
}

void Network::close() {
  gather_.cancel();
  links_.clear();
  listener_.close();
}

Survey Network::survey() const {
  std::set<ProcessId> unresponsive;
  for (const ProcessId id : gather_.silent()) unresponsive.insert(id);
  for (const ProcessId id : watch_.unresponsive()) {
    if (!gather_.answers().contains(id)) unresponsive.insert(id);
  }
  Survey survey = compose(members_.all(), gather_.answers(), std::move(unresponsive));
  survey.timeouts = static_cast<int>(gather_.open());
  survey.seconds = secondsSince(gather_.since());
  return survey;
}

Survey Network::roster() const {
  return compose(members_.all(), {}, {});
}

}  // namespace tutti::ras
