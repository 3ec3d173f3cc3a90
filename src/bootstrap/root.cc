#include "bootstrap/root.h"

#include <unistd.h>

#include <map>
#include <memory>
#include <set>

#include "base/host.h"
#include "base/log.h"
#include "base/threads/thread.h"
#include "bootstrap/link/link.h"
#include "bootstrap/link/poller.h"
#include "bootstrap/root_state.h"
#include "bootstrap/settings.h"
#include "bootstrap/unique_id.h"

namespace tutti::bootstrap {
namespace {

constexpr auto kIdleLife = std::chrono::hours(24);
constexpr auto kNoticeTime = milliseconds(2000);  ///< time to get final notices out
constexpr std::uint32_t kMaxRootFrame = 4096;
constexpr std::size_t kMaxUnproven = 4096;  ///< unproven connections; beyond, the oldest makes room
constexpr std::uint64_t kRootListener = 0;

Welcome selfIntroduction() {
  Welcome self;
  self.pid = ::getpid();
  setText(self.host, hostName());
  return self;
}

Key randomKey() {
  Key key;
  fillRandom(key);
  return key;
}

/// Everything of one root; lives on its thread.
class Root {
 public:
  Root(RootOptions options, Poller poller)
      : options_(std::move(options)),
        poller_(std::move(poller)),
        state_(selfIntroduction(), processHash(), randomKey()) {}

  void run();

 private:
  struct Conn {
    std::unique_ptr<Link> link;
    Deadline proveBy = Deadline::never();
    SteadyClock::time_point heard = SteadyClock::now();  ///< the last sign of life
  };

  void acceptAll();
  void onEvent(const Poller::Event& event);
  void onFrame(std::uint64_t name, const Frame& frame);
  void drop(std::uint64_t name);
  void apply(const RootState::Sends& sends);
  void expireStrangers();
  void tendRanks();
  void sayLastWords();
  milliseconds nextLimit() const;

  RootOptions options_;
  Poller poller_;
  RootState state_;
  std::map<std::uint64_t, Conn> conns_;
  std::set<std::uint64_t> unauthenticated_;  ///< names of connections that have not proved themselves, oldest first
  std::uint64_t nextName_ = kRootListener + 1;
  SteadyClock::time_point firstArrival_{};
  Deadline deadline_ = Deadline::in(kIdleLife);
  SteadyClock::time_point tended_ = SteadyClock::now();
  milliseconds patience_{options_.peerTimeout};  ///< of the least patient rank
};

milliseconds Root::nextLimit() const {
  Deadline next = deadline_;
  if (!unauthenticated_.empty()) next = next.earlierOf(conns_.at(*unauthenticated_.begin()).proveBy);
  if (!conns_.empty()) next = next.earlierOf(Deadline::at(tended_ + signInterval(patience_)));
  return next.remaining();
}

void Root::run() {
  raiseFileLimit();
  makeNonBlocking(options_.listener.fd());
  if (!poller_.add(options_.listener.fd(), kRootListener)) return;
  std::vector<Poller::Event> events;
  while (!state_.finished() && !deadline_.expired()) {
    poller_.wait(events, nextLimit());
    for (const Poller::Event& event : events) onEvent(event);
    expireStrangers();
    tendRanks();
    if (options_.fixedAddress && state_.complete() && options_.listener.valid()) options_.listener.close();
  }
  if (!state_.finished()) apply(state_.onDeadline(secondsSince(firstArrival_)));
  sayLastWords();
}

void Root::onEvent(const Poller::Event& event) {
  if (event.name == kRootListener) return acceptAll();
  const auto found = conns_.find(event.name);
  if (found == conns_.end()) return;
  Link& link = *found->second.link;
  std::vector<Frame> frames;
  if (event.readable) {
    link.receive(frames);
    found->second.heard = SteadyClock::now();
  }
  if (link.open()) unauthenticated_.erase(event.name);
  for (const Frame& frame : frames) onFrame(event.name, frame);
  if (!conns_.contains(event.name)) return;
  link.flush();
  if (link.end()) return drop(event.name);
  poller_.setWrite(link.fd(), event.name, link.wantsWrite());
}

void Root::acceptAll() {
  while (true) {
    Socket socket;
    const AcceptKind kind = acceptNow(options_.listener.fd(), &socket);
    if (kind == AcceptKind::Nothing) return;
    if (kind == AcceptKind::NoDescriptors || unauthenticated_.size() >= kMaxUnproven) {
      if (!unauthenticated_.empty()) drop(*unauthenticated_.begin());
      if (kind == AcceptKind::NoDescriptors) return;
    }
    const std::uint64_t name = nextName_++;
    auto link = std::make_unique<Link>(std::move(socket), ServerHandshake(options_.key, kRootRank), kMaxRootFrame);
    if (!poller_.add(link->fd(), name)) continue;
    conns_[name] = {std::move(link), Deadline::in(options_.handshakeTimeout)};
    unauthenticated_.insert(name);
  }
}

void Root::onFrame(std::uint64_t name, const Frame& frame) {
  const Purpose purpose = conns_.at(name).link->purpose();
  const bool rank = purpose == Purpose::CheckIn;
  if (frame.type() == FrameType::CheckIn && rank) {
    const auto checkIn = decodeValue<CheckIn>(frame.payload);
    if (!checkIn) return drop(name);
    if (!state_.anybodyCame() && !state_.failed()) {
      firstArrival_ = SteadyClock::now();
      deadline_ = Deadline::in(options_.timeout);
    }
    return apply(state_.onCheckIn(name, *checkIn));
  }
  if (frame.type() == FrameType::Lookup && purpose == Purpose::Lookup) {
    const auto lookup = decodeValue<Lookup>(frame.payload);
    return lookup ? apply(state_.onLookup(name, *lookup)) : drop(name);
  }
  if (frame.type() == FrameType::Alive && rank) {
    patience_ = leastPatience(patience_, frame.header.tag);
    return;
  }
  if (frame.type() == FrameType::Done && rank) return apply(state_.onDone(name));
  if (frame.type() == FrameType::Notice && rank) {
    if (const auto notice = decodeNotice(frame.payload)) return apply(state_.onNotice(name, *notice));
  }
  drop(name);
}

void Root::drop(std::uint64_t name) {
  const auto found = conns_.find(name);
  if (found == conns_.end()) return;
  const Link& link = *found->second.link;
  if (unauthenticated_.erase(name) > 0) {
    info(kBootstrap, "Bootstrap: root turned away a client from {} that did not prove to be a rank",
         link.peer().text());
  }
  poller_.remove(link.fd());
  conns_.erase(found);
  apply(state_.onClosed(name));
}

void Root::apply(const RootState::Sends& sends) {
  for (const RootSend& send : sends) {
    const auto found = conns_.find(send.to);
    if (found == conns_.end()) continue;
    Link& link = *found->second.link;
    link.send(send.type, 0, std::make_shared<const Bytes>(send.payload));
    link.flush();
    if (link.wantsWrite()) poller_.setWrite(link.fd(), send.to, true);
  }
}

void Root::expireStrangers() {
  while (!unauthenticated_.empty() && conns_.at(*unauthenticated_.begin()).proveBy.expired())
    drop(*unauthenticated_.begin());
}

/// The same that ranks do for their neighbours in the tree, who are not connected yet.
void Root::tendRanks() {
  const auto now = SteadyClock::now();
  const auto since = now - tended_;
  if (since < signInterval(patience_)) return;
  tended_ = now;
  const bool wasAway = since > options_.peerTimeout / 2;
  std::vector<std::uint64_t> silent;
  for (auto& [name, conn] : conns_) {
    if (!conn.link->open() || conn.link->purpose() != Purpose::CheckIn) continue;
    if (wasAway) conn.heard = now;
    conn.link->send(FrameType::Alive, patienceTag(options_.peerTimeout), nullptr);
    conn.link->flush();
    if (conn.link->wantsWrite()) poller_.setWrite(conn.link->fd(), name, true);
    if (now - conn.heard > options_.peerTimeout) silent.push_back(name);
  }
  for (const std::uint64_t name : silent) drop(name);
}

void Root::sayLastWords() {
  const Deadline end = Deadline::in(kNoticeTime);
  while (!end.expired()) {
    bool drained = true;
    for (auto& [name, conn] : conns_) {
      conn.link->flush();
      drained = drained && (conn.link->drained() || !conn.link->open());
    }
    if (drained) return;
    std::vector<Poller::Event> events;
    poller_.wait(events, milliseconds(20));
  }
}

}  // namespace

Key rootKey(const UniqueId& id, const std::string& commKey) {
  if (!id.fixedAddress) return deriveKey(id.secret, "tutti root");
  return commKey.empty() ? keyFromText("tutti open root", "") : keyFromText("tutti comm key", commKey);
}

Status startRoot(RootOptions options) {
  ASSIGN(Poller poller, Poller::create());
  const auto root = std::make_shared<Root>(std::move(options), std::move(poller));
  ASSIGN(Thread thread, Thread::start("NCCL BootstrapR", [root] { root->run(); }));
  thread.detach();
  return Status();
}

}  // namespace tutti::bootstrap
