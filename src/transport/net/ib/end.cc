#include "transport/net/ib/end.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "transport/net/ib/nic/failure_text.h"
#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/port.h"

namespace tutti::net::ib {

namespace {

/// Tests that find nothing, before the clock is read; and how often peer and NICs are then looked at.
constexpr std::uint32_t kIdleTests = 16;
constexpr milliseconds kLookEvery{5};
/// A peer that closes in order says so, but what its NIC refuses from then on may be here before its word.
constexpr milliseconds kByeBound{1000};
constexpr std::size_t kPollBatch = 16;

/// What this side's NIC has said on its own, which explains a status better than its name.
std::string whatNicSays(const IbPort& port, std::uint32_t queuePair) {
  const NicHealth& health = port.nic->health();
  SteadyClock::time_point since;
  if (health.isDown(port.number, &since)) {
    return fmt::format(": the port {} here has been down for {:.1f} s", port.text(), secondsSince(since));
  }
  const std::string said = health.failureOf(queuePair);
  return said.empty() ? said : fmt::format(": the NIC says {}", said);
}

}  // namespace

IbEnd::IbEnd(std::unique_ptr<IbLink> link) : link_(std::move(link)) {
  const QueuePairs& pairs = *link_->pairs;
  const std::size_t ports = std::max<std::size_t>(pairs.ports().size(), pairs.remote().children);
  pairsInUse_ = link_->options.splits ? pairs.count() : std::min(ports, pairs.count());
  for (IbRequest& request : requests_) request.end = this;
}

IbEnd::~IbEnd() {
  // Said before the queue pairs go: what the peer's NIC is refused afterwards is no failure.
  if (broken_.ok()) link_->control->sayBye();
  link_->pairs.reset();  // before the memory that they use
}

std::string IbEnd::place() const {
  return fmt::format("{} (control over {})", link_->control->peer().text(), link_->control->device());
}

IbRequest* IbEnd::takeRequest() {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    IbRequest& request = requests_[nextRequest_++ % requests_.size()];
    if (request.busy) continue;
    request.busy = true;
    request.left = 0;
    request.count = 1;
    return &request;
  }
  return nullptr;
}

Status IbEnd::usable() {
  return broken_;
}

Status IbEnd::post(std::size_t pair, ibv_send_wr& chain, std::uint32_t requests) {
  QueuePair& one = (*link_->pairs)[pair];
  ibv_send_wr* refused = nullptr;
  if (const int error = ibv_post_send(one.get(), &chain, &refused); error != 0) {
    return breakWith(fail(ncclSystemError, "NET/IB : Call to ibv_post_send failed with error {}, from {}",
                          errnoText(error), link_->pairs->pathText(pair)));
  }
  one.sent(requests);
  return {};
}

Result<bool> IbEnd::test(IbRequest& request, std::span<int> sizes) {
  if (!request.done()) TRY(advance());
  if (!request.done()) return false;
  for (std::size_t i = 0; i < sizes.size() && i < request.count; ++i) sizes[i] = static_cast<int>(request.bytes[i]);
  giveBack(request);
  return true;
}

Status IbEnd::advance() {
  TRY(broken_);
  bool any = false;
  std::array<ibv_wc, kPollBatch> room;
  for (std::size_t port = 0; port < link_->pairs->ports().size(); ++port) {
    const std::span<ibv_wc> here = link_->pairs->poll(port, room);
    any = any || !here.empty();
    for (const ibv_wc& completion : here) TRY(take(port, completion));
  }
  TRY(progress());
  // A NIC that the system takes away works on as long as somebody uses it.
  if (healthChanges() != healthSeen_) TRY(lookAtNics());
  if (any) {
    idle_ = 0;
    return {};
  }
  return idle();
}

Status IbEnd::idle() {
  return ++idle_ < kIdleTests ? Status() : look();
}

Status IbEnd::take(std::size_t port, const ibv_wc& completion) {
  if (completion.status != IBV_WC_SUCCESS) return failedWith(port, completion);
  const std::size_t pair = link_->pairs->indexOf(port, completion.qp_num);
  if (pair < link_->pairs->count()) completed(pair, completion);
  return {};
}

Status IbEnd::failedWith(std::size_t port, const ibv_wc& completion) {
  // The first failure is the cause; what was under way besides is flushed after it.
  if (!suspicion_.empty()) return {};
  const std::size_t pair = link_->pairs->indexOf(port, completion.qp_num);
  suspicion_ =
      fmt::format("NET/IB: Got completion from peer {} with status={}({}) vendor_err={} while {}, from {}{}.{}",
                  place(), statusName(completion.status), static_cast<int>(completion.status), completion.vendor_err,
                  verb(), link_->pairs->pathText(pair), whatNicSays(*link_->pairs->ports()[port], completion.qp_num),
                  statusRemedy(completion.status));
  suspectUntil_ = Deadline::in(kByeBound);
  idle_ = kIdleTests;
  lookAgain_ = {};
  return look();
}

Status IbEnd::onPeer() {
  switch (link_->control->look()) {
    case ControlSocket::Peer::There:
      break;
    case ControlSocket::Peer::Left:
      return onFarewell();
    case ControlSocket::Peer::Gone:
      if (!suspicion_.empty()) return breakWith(fail(ncclRemoteError, "{} The peer's process is gone", suspicion_));
      return breakQuietly(fmt::format(
          "NET/IB : Connection closed by remote peer {} while {}: its process or host is gone", place(), verb()));
  }
  if (!suspicion_.empty() && suspectUntil_.expired()) return breakWith(fail(ncclRemoteError, "{}", suspicion_));
  return {};
}

/// Whether it is a failure that the peer is gone is known to those who may hear its goodbye elsewhere: they tell what
/// is written here. Until then it is no more than the thread's last error.
Status IbEnd::breakQuietly(const std::string& why) {
  std::string said;
  {
    const ErrorsAsInfo quiet;
    breakWith(fail(ncclRemoteError, "{}", why)).ignore();
    said = lastErrorText();
  }
  recallLastError(said);
  return broken_;
}

Status IbEnd::onFarewell() {
  const std::string failed = std::exchange(suspicion_, {});
  suspectUntil_ = Deadline::never();
  if (!needsPeer(!failed.empty())) return {};
  return breakQuietly(fmt::format("NET/IB : Remote peer {} has closed the connection, in order, while {}{}{}", place(),
                                  verb(), failed.empty() ? "" : ". ", failed));
}

/// A queue pair that is out of order need not say so of any work: there may be none.
Status IbEnd::lookAtQueuePairs() {
  QueuePairs& pairs = *link_->pairs;
  for (std::size_t i = 0; i < pairs.count(); ++i) {
    const std::string why = pairs[i].port().nic->health().failureOf(pairs[i].number());
    if (why.empty()) continue;
    return breakWith(fail(ncclSystemError, "NET/IB : The NIC says {} while {} with {}, from {}", why, verb(), place(),
                          pairs.pathText(i)));
  }
  return {};
}

std::uint64_t IbEnd::healthChanges() const {
  std::uint64_t changes = 0;
  for (const IbPort* port : link_->pairs->ports()) changes += port->nic->health().changes();
  return changes;
}

Status IbEnd::lookAtNics() {
  healthSeen_ = healthChanges();
  anyPortDown_ = false;
  // What the NICs of a connection do that has ended in order is nobody's trouble.
  if (link_->control->look() == ControlSocket::Peer::Left) return {};
  // Work that has failed says more, and whether its peer has left is still to be seen.
  if (link_->options.failsOnEvents && suspicion_.empty()) TRY(lookAtQueuePairs());
  for (const IbPort* port : link_->pairs->ports()) {
    const NicHealth& health = port->nic->health();
    if (const std::string why = health.deviceFailure(); !why.empty() && link_->options.failsOnEvents) {
      return breakWith(fail(ncclSystemError, "NET/IB : {} has failed ({}) while {} with {}: look at dmesg",
                            port->text(), why, verb(), place()));
    }
    SteadyClock::time_point since;
    if (!health.isDown(port->number, &since)) continue;
    anyPortDown_ = true;
    if (SteadyClock::now() - since < link_->options.lossBound()) continue;
    return breakWith(
        fail(ncclRemoteError,
             "NET/IB : The port {} has been down for {:.1f} s while {} with {}: look at the cable, the switch "
             "and ip link; NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT say how long it may be",
             port->text(), secondsSince(since), verb(), place()));
  }
  return {};
}

Status IbEnd::look() {
  const auto now = SteadyClock::now();
  if (now < lookAgain_) return {};
  lookAgain_ = now + kLookEvery;
  TRY(onPeer());
  return anyPortDown_ ? lookAtNics() : Status();
}

Result<IbRegistration*> IbEnd::registerMemory(const MemoryRange& range) {
  auto made = std::make_unique<IbRegistration>();
  const auto& ports = link_->pairs->ports();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    auto region = ports[i]->nic->registrations().acquire(range);
    if (region.ok()) {
      made->regions[i] = region.value();
      continue;
    }
    for (std::size_t k = 0; k < i; ++k) ports[k]->nic->registrations().release(made->regions[k]).ignore();
    return region.status();
  }
  return made.release();
}

Status IbEnd::deregister(IbRegistration* registration) {
  const std::unique_ptr<IbRegistration> owned(registration);
  Status first;
  const auto& ports = link_->pairs->ports();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const Status released = ports[i]->nic->registrations().release(owned->regions[i]);
    if (first.ok()) first = released;
  }
  return first;
}

}  // namespace tutti::net::ib
