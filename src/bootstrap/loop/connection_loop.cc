#include "bootstrap/loop/connection_loop.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "base/threads/shortage.h"
#include "bootstrap/link/paced_listener.h"
#include "bootstrap/loop/invitations.h"

namespace tutti::bootstrap {
namespace {

constexpr auto kLastWords = milliseconds(1000);

}  // namespace

ConnectionLoop::ConnectionLoop(Options options, Listener listener, Poller poller)
    : options_(std::move(options)),
      invitations_(std::make_shared<Invitations>()),
      listener_(std::make_unique<PacedListener>(std::move(listener), fmt::format("rank {}", options_.rank))),
      poller_(std::move(poller)) {}

ConnectionLoop::~ConnectionLoop() {
  stop();
}

Result<std::shared_ptr<ConnectionLoop>> ConnectionLoop::start(Options options, Listener listener) {
  ASSIGN(Poller poller, Poller::create());
  auto loop = std::make_shared<ConnectionLoop>(std::move(options), std::move(listener), std::move(poller));
  ASSIGN(loop->thread_, Thread::start("NCCL Bootstrap", [raw = loop.get()] { raw->run(); }));
  return loop;
}

void ConnectionLoop::admit(const Key& key) {
  const std::lock_guard lock(mutex_);
  s_.key = key;
  (void)listener_->watch(poller_, kListenerName);
}

ConnectionLoop::Name ConnectionLoop::insert(Entry entry) {
  const Name name = s_.nextName++;
  (void)poller_.add(entry.link->fd(), name, entry.link->wantsWrite());
  s_.links.emplace(name, std::move(entry));
  return name;
}

void ConnectionLoop::addClient(std::unique_ptr<Link> link, Role role, int peer) {
  const std::lock_guard lock(mutex_);
  if (role == Role::Tree) watchSilence(link->fd(), options_.peerTimeout);
  link->flush();
  Entry entry;
  entry.link = std::move(link);
  entry.role = role;
  entry.peer = peer;
  entry.proveBy = Deadline::in(options_.handshakeTimeout);
  const Name name = insert(std::move(entry));
  if (role == Role::Tree || role == Role::PeerOut) s_.outgoing[peer] = name;
  poller_.wake();  // a new deadline to watch
}

ConnectionLoop::Entry* ConnectionLoop::sendLink(int peer, Name* name) {
  const auto out = s_.outgoing.find(peer);
  if (out == s_.outgoing.end()) return nullptr;
  *name = out->second;
  return &s_.links.at(out->second);
}

bool ConnectionLoop::reaches(int peer) const {
  const std::lock_guard lock(mutex_);
  return peer == options_.rank || s_.outgoing.contains(peer);
}

void ConnectionLoop::sendOn(Name name, Entry& entry, FrameType type, int tag, const SharedBytes& payload,
                            std::uint8_t op) {
  const bool waited = entry.link->wantsWrite();
  entry.link->send(type, tag, payload, op);
  entry.link->flush();
  if (!waited && entry.link->wantsWrite()) poller_.setWrite(entry.link->fd(), name, true);
}

bool ConnectionLoop::send(int peer, FrameType type, int tag, const SharedBytes& payload, std::uint8_t op) {
  const std::lock_guard lock(mutex_);
  if (peer == options_.rank) {
    Frame frame;
    frame.payload = *payload;
    deliver(Channel::User, peer, tag, std::move(frame));
    return true;
  }
  Name name = 0;
  Entry* entry = sendLink(peer, &name);
  if (entry == nullptr) return false;
  sendOn(name, *entry, type, tag, payload, op);
  return true;
}

void ConnectionLoop::sendToRoot(FrameType type, Bytes payload, Role role) {
  const std::lock_guard lock(mutex_);
  // Once the root has our Done it may close at any moment.
  if (type == FrameType::Done) s_.rootDone = true;
  const auto shared = std::make_shared<const Bytes>(std::move(payload));
  for (auto& [name, entry] : s_.links) {
    if (entry.role == role) sendOn(name, entry, type, 0, shared);
  }
}

void ConnectionLoop::deliver(Channel channel, int peer, int tag, Frame frame) {
  s_.queues[{channel, peer, tag}].push_back(std::move(frame));
  changed_.notify_all();
}

Result<Frame> ConnectionLoop::await(Channel channel, int peer, int tag, Deadline deadline,
                                    const std::function<std::string()>& expected) {
  std::unique_lock lock(mutex_);
  const QueueKey key{channel, peer, tag};
  struct Waiting {
    ConnectionLoop& loop;
    std::unique_lock<std::mutex>& lock;
    ~Waiting() {
      if (!lock.owns_lock()) lock.lock();
      loop.waitLocked(-1);
    }
  };
  waitLocked(1);
  const Waiting waiting{*this, lock};
  while (true) {
    if (!s_.aborted.ok()) return s_.aborted;
    if (const auto queue = s_.queues.find(key); queue != s_.queues.end()) {
      Frame frame = std::move(queue->second.front());
      queue->second.pop_front();
      if (queue->second.empty()) s_.queues.erase(queue);
      return frame;
    }
    if (s_.failure) return blame();
    Deadline until = deadline;
    if (const int* gone = goneLocked(channel, peer, until)) {
      const std::string who = describeDepartureLocked(*gone);
      lock.unlock();  // `expected` may ask this loop for names
      return fail(ncclRemoteError, "Bootstrap: {}, while rank {} still waits for {}", who, options_.rank, expected());
    }
    if (deadline.expired()) {
      lock.unlock();
      const std::string missing = expected();
      lock.lock();
      record({-1, ncclRemoteError, "",
              fmt::format("Bootstrap: rank {} waited in vain for {}: that rank hangs, is stopped, or never made this "
                          "call; TUTTI_BOOTSTRAP_TIMEOUT_SEC sets the time allowed",
                          options_.rank, missing)},
             0, false);
      continue;
    }
    if (until.isNever()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, until.when());
    }
  }
}

bool ConnectionLoop::arrived(Channel channel, int peer, int tag) const {
  const std::lock_guard lock(mutex_);
  return arrivedLocked(channel, peer, tag);
}

bool ConnectionLoop::arrivedLocked(Channel channel, int peer, int tag) const {
  if (!s_.aborted.ok() || s_.failure || s_.queues.contains({channel, peer, tag})) return true;
  Deadline unused = Deadline::never();
  return goneLocked(channel, peer, unused) != nullptr;
}

void ConnectionLoop::flood(FrameType type, int tag, const SharedBytes& payload, Name except) {
  for (auto& [name, entry] : s_.links) {
    if (!isOfTree(entry.role) || name == except || entry.left) continue;
    sendOn(name, entry, type, tag, payload);
  }
}

void ConnectionLoop::announceState(const SharedBytes& state) {
  const std::lock_guard lock(mutex_);
  if (!s_.stopping) flood(FrameType::State, options_.rank, state, 0);
}

void ConnectionLoop::abort(Status why) {
  const std::lock_guard lock(mutex_);
  if (s_.aborted.ok()) s_.aborted = why;
  invitations_->close(why, "the communicator has failed, or was aborted");
  changed_.notify_all();
}

void ConnectionLoop::resume() {
  const std::lock_guard lock(mutex_);
  s_.aborted = {};
  ++s_.era;
  if (!s_.failure || !isOver(*s_.failure)) return;
  s_.failure.reset();
  s_.failureTold = false;
  s_.lost.reset();
  // What was heard meanwhile, and had been explained by that failure.
  if (s_.later && !isOver(*s_.later)) take(std::move(*s_.later), true);
  s_.later.reset();
  for (const int rank : std::exchange(s_.goneAway, {})) {
    if (!s_.failure && !s_.left.contains(rank)) record(absenceOf(rank), 0, true);
  }
  poller_.wake();
}

Status ConnectionLoop::aborted() const {
  const std::lock_guard lock(mutex_);
  return s_.aborted;
}

void ConnectionLoop::setTable(std::vector<RankEntry> table) {
  const std::lock_guard lock(mutex_);
  s_.table = std::move(table);
}

Address ConnectionLoop::addressOf(int rank) const {
  const std::lock_guard lock(mutex_);
  return s_.table.empty() ? Address() : s_.table[static_cast<std::size_t>(rank)].listen;
}

std::string ConnectionLoop::describeLocked(int rank) const {
  if (rank < 0 || s_.table.empty()) return rankText(rank, "");
  const RankEntry& entry = s_.table[static_cast<std::size_t>(rank)];
  return rankText(rank, textOf(entry.host), entry.pid);
}

std::string ConnectionLoop::describe(int rank) const {
  const std::lock_guard lock(mutex_);
  return describeLocked(rank);
}

bool ConnectionLoop::everybodyTold() const {
  // While the tree is still being made, a child that is about to connect must hear of a failure, too: else it sees a
  // connection that ends without a word, and blames this rank.
  const bool failed = s_.failure || !s_.aborted.ok();
  for (const RankRange& child : options_.place.children) {
    if (!failed || !s_.key || s_.children.contains(child.begin) || s_.left.contains(child.begin)) continue;
    if (!s_.failure || s_.failure->rank != child.begin) return false;
  }
  return std::all_of(s_.links.begin(), s_.links.end(), [](const auto& link) { return link.second.link->drained(); });
}

void ConnectionLoop::stop(std::span<const std::byte> account) {
  std::unique_lock lock(mutex_);
  if (s_.stopping) return;
  // Without memory for it peers see their connections end.
  ignoringShortage([&] {
    if (!s_.failure && s_.aborted.ok()) {
      if (!s_.exiting) sayGoodbye(false, account);
    } else if (!s_.failure) {
      record(abortNotice(), 0, false);  // also for children that connect from now on
    }
  });
  s_.stopping = true;
  invitations_->close(Status(ncclInvalidUsage), "the communicator was destroyed");
  poller_.wake();
  changed_.wait_for(lock, kLastWords, [this] { return everybodyTold(); });
  s_.stopped = true;
  lock.unlock();
  poller_.wake();
  thread_.join();
  lock.lock();
  s_.links.clear();
  s_.outgoing.clear();
  listener_->close();
}

}  // namespace tutti::bootstrap
