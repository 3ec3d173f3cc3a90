#include "bootstrap/root.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>

#include "base/host.h"
#include "base/log.h"
#include "base/threads/shortage.h"
#include "base/threads/thread.h"
#include "bootstrap/id_use.h"
#include "bootstrap/link/link.h"
#include "bootstrap/link/paced_listener.h"
#include "bootstrap/link/poller.h"
#include "bootstrap/loop/known_losses.h"
#include "bootstrap/loop/patience.h"
#include "bootstrap/root_state.h"

namespace tutti::bootstrap {
namespace {

constexpr auto kIdleLife = std::chrono::hours(24);
constexpr auto kNoticeTime = milliseconds(2000);  ///< time to get final notices out
constexpr std::uint32_t kMaxRootFrame = 4096;
/// Connections that have shown a pass, and no proof; beyond, the oldest makes room. A pass may have been overheard.
constexpr std::size_t kMaxUnproven = 4096;
constexpr std::uint64_t kRootListener = 0;

Key randomKey() {
  Key key;
  fillRandom(key);
  return key;
}

/// Everything of one root; lives on its thread, but for what RunningRoot says.
class Root final : public RunningRoot {
 public:
  Root(RootOptions options, Poller poller)
      : options_(std::move(options)),
        poller_(std::move(poller)),
        listener_(std::move(options_.listener), "the root"),
        state_(selfIntroduction(), processHash(), randomKey()) {}

  void run();
  void tell(const Notice& failure) override;
  void leave() override { endBy(Deadline::in(kLateness)); }
  void end() override { endBy(Deadline::in(milliseconds(0))); }
  void endWithProcess() override;
  bool hasEnded() const override { return ended_.load(); }

 private:
  struct Conn {
    std::unique_ptr<Link> link;
    Deadline proveBy = Deadline::never();
    UnprovenPlaces::Place place;                         ///< until it has shown its pass
    SteadyClock::time_point heard = SteadyClock::now();  ///< the last sign of life
    bool answered = false;                               ///< knows at least whose root this is
  };

  void endBy(Deadline deadline);
  void hearProcess();
  /// Whether there is somebody to whom nothing was said yet.
  bool somebodyComes() const {
    return std::any_of(conns_.begin(), conns_.end(), [](const auto& conn) { return !conn.second.answered; });
  }
  void acceptAll();
  void complainOfStarvation();
  void onTrouble(RootTrouble trouble, int error = 0);
  void onEvent(const Poller::Event& event);
  void onFrame(std::uint64_t name, const Frame& frame);
  void drop(std::uint64_t name);
  void apply(const RootState::Sends& sends);
  void expireStrangers();
  void serve();
  void tendRanks();
  void reportAbsent();
  void sayLastWords();
  milliseconds nextLimit() const;

  RootOptions options_;
  Poller poller_;
  PacedListener listener_;
  RootState state_;
  std::map<std::uint64_t, Conn> conns_;
  std::set<std::uint64_t> speechless_;       ///< names of connections that have shown no pass yet, oldest first
  std::set<std::uint64_t> unauthenticated_;  ///< of those that have, and have not proved themselves, oldest first
  std::uint64_t nextName_ = kRootListener + 1;
  const SteadyClock::time_point newsFrom_ = SteadyClock::now() - kNewsSpread;
  SteadyClock::time_point firstArrival_{};
  Deadline deadline_ = Deadline::in(kIdleLife);
  Deadline reportAt_ = Deadline::never();
  SteadyClock::time_point tended_ = SteadyClock::now();
  bool parting_ = false;                         ///< the process ends
  milliseconds patience_{options_.peerTimeout};  ///< of the least patient rank

  std::mutex mutex_;
  struct FromProcess {
    std::optional<Notice> failure;
    bool processEnds = false;
    Deadline endBy = Deadline::never();
  } fromProcess_;  ///< guarded by mutex_
  std::atomic<bool> ended_{false};
};

void Root::tell(const Notice& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (!fromProcess_.failure) fromProcess_.failure = failure;
  }
  poller_.wake();
}

void Root::endBy(Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    fromProcess_.endBy = fromProcess_.endBy.earlierOf(deadline);
  }
  poller_.wake();
}

void Root::endWithProcess() {
  {
    const std::lock_guard lock(mutex_);
    fromProcess_.processEnds = true;
  }
  endBy(Deadline::in(kParting));
}

void Root::hearProcess() {
  std::optional<Notice> failure;
  bool processEnds = false;
  {
    const std::lock_guard lock(mutex_);
    failure = std::exchange(fromProcess_.failure, std::nullopt);
    processEnds = std::exchange(fromProcess_.processEnds, false);
    parting_ = parting_ || processEnds;
    deadline_ = deadline_.earlierOf(fromProcess_.endBy);
  }
  if (failure) apply(state_.onFailure(std::move(*failure)));
  if (processEnds) apply(state_.onProcessEnd(KnownLosses::instance().perhapsBecause(newsFrom_)));
}

milliseconds Root::nextLimit() const {
  Deadline next = deadline_.earlierOf(listener_.next()).earlierOf(reportAt_);
  for (const auto* some : {&speechless_, &unauthenticated_}) {
    if (!some->empty()) next = next.earlierOf(conns_.at(*some->begin()).proveBy);
  }
  if (!conns_.empty()) next = next.earlierOf(Deadline::at(tended_ + signInterval(patience_)));
  return next.remaining();
}

void Root::run() {
  raiseFileLimit();
  try {
    if (listener_.watch(poller_, kRootListener)) serve();
    if (!state_.finished())
      apply(state_.onDeadline(secondsSince(firstArrival_), KnownLosses::instance().perhapsBecause(newsFrom_)));
  } catch (const std::bad_alloc&) {
    ignoringShortage([this] { onTrouble(RootTrouble::NoMemory); });  // else ranks see their connections end
  }
  listener_.close();
  ignoringShortage([this] { sayLastWords(); });
  // Somebody of the process may still know this root: its thread is over, so are its descriptors but the poller's.
  conns_.clear();
  ended_.store(true);
}

void Root::serve() {
  std::vector<Poller::Event> events;
  while ((parting_ ? somebodyComes() : !state_.finished()) && !deadline_.expired()) {
    if (const int broken = poller_.wait(events, nextLimit()); broken != 0)
      return onTrouble(RootTrouble::ClosedByOthers, broken);
    for (const Poller::Event& event : events) onEvent(event);
    listener_.tend();
    hearProcess();
    complainOfStarvation();
    expireStrangers();
    tendRanks();
    if (reportAt_.expired()) reportAbsent();
  }
}

void Root::reportAbsent() {
  reportAt_ = Deadline::never();
  if (!state_.complete() && !state_.failed()) warn("{}", state_.absenceText(options_.report.members));
}

void Root::onTrouble(RootTrouble trouble, int error) {
  apply(state_.onFailure(ownTrouble(selfIntroduction(), trouble, error)));
}

void Root::complainOfStarvation() {
  const auto since = listener_.starvedSince();
  if (!since || SteadyClock::now() - *since < kStarvation || state_.failed()) return;
  onTrouble(RootTrouble::NoDescriptors);
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
  if (link.passed() && speechless_.erase(event.name) > 0) {
    found->second.place.giveBack();
    found->second.proveBy = Deadline::in(options_.handshakeTimeout);
    unauthenticated_.insert(event.name);
  }
  if (link.open()) unauthenticated_.erase(event.name);
  for (const Frame& frame : frames) onFrame(event.name, frame);
  if (!conns_.contains(event.name)) return;
  link.flush();
  if (link.end()) return drop(event.name);
  poller_.setWrite(link.fd(), event.name, link.wantsWrite());
}

void Root::acceptAll() {
  for (Arrival& arrival : listener_.take(options_.key, kRootRank, kMaxRootFrame)) {
    if (unauthenticated_.size() >= kMaxUnproven) drop(*unauthenticated_.begin());
    const std::uint64_t name = nextName_++;
    if (!poller_.add(arrival.link->fd(), name, arrival.link->wantsWrite())) continue;
    const bool passed = arrival.link->passed();
    Conn conn;
    conn.proveBy =
        Deadline::in(passed ? options_.handshakeTimeout : std::min(options_.handshakeTimeout, kUnprovenTime));
    conn.link = std::move(arrival.link);
    conn.place = std::move(arrival.place);
    conns_[name] = std::move(conn);
    (passed ? unauthenticated_ : speechless_).insert(name);
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
      if (options_.report.after > milliseconds(0)) reportAt_ = Deadline::in(options_.report.after);
    }
    const auto sends = state_.onCheckIn(name, *checkIn);
    if (options_.fixedAddress && state_.complete()) listener_.close();  // before a rank can come to the next root here
    return apply(sends);
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
  if (speechless_.erase(name) + unauthenticated_.erase(name) > 0) {
    listener_.sawStranger();
    info(kBootstrap, "Bootstrap: root turned away a client from {} that did not prove itself", link.peer().text());
  }
  poller_.remove(link.fd());
  conns_.erase(found);
  apply(state_.onClosed(name));
}

void Root::apply(const RootState::Sends& sends) {
  for (const RootSend& send : sends) {
    const auto found = conns_.find(send.to);
    if (found == conns_.end()) continue;
    found->second.answered = true;
    Link& link = *found->second.link;
    link.send(send.type, 0, std::make_shared<const Bytes>(send.payload));
    link.flush();
    if (link.wantsWrite()) poller_.setWrite(link.fd(), send.to, true);
  }
}

void Root::expireStrangers() {
  for (const auto* some : {&speechless_, &unauthenticated_}) {
    while (!some->empty() && conns_.at(*some->begin()).proveBy.expired()) drop(*some->begin());
  }
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
  for (const std::uint64_t name : silent) {
    apply(state_.onSilence(name, options_.peerTimeout));
    drop(name);
  }
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

Result<std::shared_ptr<RunningRoot>> startRoot(RootOptions options) {
  ASSIGN(Poller poller, Poller::create());
  const auto root = std::make_shared<Root>(std::move(options), std::move(poller));
  ASSIGN(Thread thread, Thread::start("NCCL BootstrapR", [root] { root->run(); }));
  thread.detach();
  return std::shared_ptr<RunningRoot>(root);
}

}  // namespace tutti::bootstrap
