#include "transport/net/ib/end.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "transport/net/ib/nic/failure_text.h"
#include "transport/net/ib/nic/health.h"
#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/options.h"
#include "transport/net/ib/nic/port.h"
#include "transport/net/ib/nic/registrations.h"

namespace tutti::net::ib {

namespace {

/// Tests that find nothing, before the clock is read.
constexpr std::uint32_t kIdleTests = 16;
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

/// Whether a failure may be the port's or the path's: what a peer refuses it refuses over every other, too.
bool concernsStrandAlone(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_WR_FLUSH_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
    case IBV_WC_FATAL_ERR:
    case IBV_WC_GENERAL_ERR:
      return true;
    default:
      return false;
  }
}

}  // namespace

SideBlock IbLink::describe() const {
  SideBlock block = pairs->describe();
  block.splits = options.splits ? 1 : 0;
  block.failover = options.failover ? 1 : 0;
  block.recovery = options.recovery ? 1 : 0;
  options.who.copy(block.who.data(), block.who.size() - 1);
  block.memory = memory->address();
  for (std::size_t i = 0; i < ports.size(); ++i) block.ports[i].key = memory->remoteKey(i);
  return block;
}

IbEnd::IbEnd(std::unique_ptr<IbLink> link, Agreement::Role role) : link_(std::move(link)), role_(role) {
  QueuePairs& pairs = *link_->pairs;
  for (IbRequest& request : requests_) request.end = this;
  const bool both = link_->options.failover && pairs.remote().failover != 0;
  if (!both || pairs.besides(0) == pairs.all()) {
    use(pairs.all());
    return;
  }
  AgreementEnd& self = *this;
  agreement_ = std::make_unique<Agreement>(role, pairs, *link_->control, self, link_->options.who);
  use(agreement_->active());
  if (!link_->options.recovery || pairs.remote().recovery == 0) return;
  trials_ = std::make_unique<PathTrials>(role, pairs, *link_->control, link_->options);
}

IbEnd::~IbEnd() {
  // What the peer has said and nobody read would make the system cut the connection, and our goodbye with it.
  link_->control->look();
  trials_.reset();
  // Said before the queue pairs go: what the peer's NIC is refused afterwards is no failure.
  if (broken_.ok()) link_->control->sayBye();
  link_->pairs.reset();  // before the memory that they use
}

void IbEnd::use(const Strands& strands) {
  const QueuePairs& pairs = *link_->pairs;
  active_.clear();
  for (std::size_t i = 0; i < pairs.count(); ++i) {
    if (strands[i]) active_.push_back(i);
  }
  const std::size_t ports = std::max<std::size_t>(pairs.ports().size(), pairs.remote().children);
  pairsInUse_ = link_->options.splits ? active_.size() : std::min(ports, active_.size());
}

std::bitset<kMostChildren> IbEnd::portsOf(const Strands& strands) const {
  std::bitset<kMostChildren> ports;
  for (std::size_t port = 0; port < link_->pairs->ports().size(); ++port) {
    ports.set(port, (link_->pairs->ofPort(port) & strands).any());
  }
  return ports;
}

std::string IbEnd::place() const {
  return fmt::format("{} (control over {})", link_->control->peer().text(), link_->control->device());
}

std::string IbEnd::deed() const {
  const char* const preposition = role_ == Agreement::Role::Sender ? "to" : "from";
  return fmt::format("{}, was {} {} {}", link_->options.who, verb(), preposition, link_->pairs->remote().who.data());
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

Result<bool> IbEnd::carries() {
  if (agreement_ != nullptr && agreement_->due()) TRY(agree());
  return !halted();
}

Status IbEnd::post(std::size_t pair, ibv_send_wr& chain, std::uint32_t requests) {
  QueuePair& one = (*link_->pairs)[pair];
  ibv_send_wr* refused = nullptr;
  const int error = ibv_post_send(one.get(), &chain, &refused);
  if (error != 0) return refusedWith(pair, "ibv_post_send", error);
  one.sent(requests);
  return {};
}

Status IbEnd::refusedWith(std::size_t pair, const char* call, int error) {
  return loseOrBreak(
      pair, fmt::format("Call to {} failed with error {} while {}, from {}; {}.{}", call, errnoText(error), deed(),
                        link_->pairs->pathText(pair), openText(), postRemedy(error)));
}

Status IbEnd::loseOrBreak(std::size_t pair, const std::string& why) {
  if (goesOnWithout(link_->pairs->besides(pair), why)) return {};
  return breakWith(fail(ncclSystemError, "NET/IB : {}", why));
}

bool IbEnd::goesOnWithout(const Strands& strands, const std::string& why) {
  if (agreement_ == nullptr) return false;
  if ((strands & ~agreement_->lost()).none()) return true;
  const Strands last = agreement_->canLose(strands) ? Strands() : untried() & ~strands;
  if (last.any()) {
    lastResort_ = true;
    agreement_->revive(last);
  }
  if (!agreement_->canLose(strands)) return false;
  agreement_->lose(strands, why);
  return true;
}

bool IbEnd::failsSomewhere() const {
  return agreement_ != nullptr && (agreement_->active() & agreement_->lost()).any();
}

/// Strands that are lost, and may be back without having been tried since. Once, until something has been carried.
Strands IbEnd::untried() const {
  Strands strands;
  // While an agreement is under way it has told already what is lost.
  if (trials_ == nullptr || lastResort_ || agreement_->halted()) return strands;
  for (std::size_t i = 0; i < link_->pairs->count(); ++i) {
    strands.set(i, agreement_->lost()[i] && trials_->portIsUp(i));
  }
  return strands;
}

Result<bool> IbEnd::test(IbRequest& request, std::span<int> sizes) {
  if (!request.done()) TRY(advance());
  if (!request.done()) return false;
  for (std::size_t i = 0; i < sizes.size() && i < request.count; ++i) sizes[i] = static_cast<int>(request.bytes[i]);
  giveBack(request);
  return true;
}

/// Whether anything was there.
Result<bool> IbEnd::takeAll() {
  bool any = false;
  std::array<ibv_wc, kPollBatch> room;
  for (std::size_t port = 0; port < link_->pairs->ports().size(); ++port) {
    const std::span<ibv_wc> here = link_->pairs->poll(port, room);
    any = any || !here.empty();
    for (const ibv_wc& completion : here) TRY(take(port, completion));
  }
  return any;
}

Status IbEnd::advance() {
  TRY(broken_);
  if (halted()) return agree();
  ASSIGN(const bool any, takeAll());
  TRY(progress());
  // A NIC that the system takes away works on as long as somebody uses it.
  if (healthChanges() != healthSeen_) TRY(lookAtNics());
  if (any) idle_ = 0;
  // Strands that are lost are looked after also by an end that always has something to do.
  const bool degraded = agreement_ != nullptr && agreement_->lost().any();
  if (!any || degraded) TRY(degraded ? look() : idle());
  return agreement_ != nullptr && agreement_->due() ? agree() : Status();
}

Status IbEnd::agree() {
  if (trials_ != nullptr && !halted()) trials_->stop();
  if (const Status agreed = agreement_->advance(); !agreed.ok()) return breakWith(agreed);
  if (!halted()) return {};
  TRY(progress());
  if (healthChanges() != healthSeen_) TRY(lookAtNics());
  return look();
}

bool IbEnd::drained() {
  std::array<ibv_wc, kPollBatch> room;
  for (std::size_t port = 0; port < link_->pairs->ports().size(); ++port) {
    for (bool more = true; more;) {
      const std::span<ibv_wc> here = link_->pairs->poll(port, room);
      more = !here.empty();
      for (const ibv_wc& completion : here) {
        if (completion.status != IBV_WC_SUCCESS) {
          dropped(completion);
        } else {
          completed(link_->pairs->indexOf(port, completion.qp_num), completion);
        }
      }
    }
  }
  return !awaitsMore();
}

Status IbEnd::resume(const Strands& strands, const RowsSeen& peers) {
  use(strands);
  suspicion_.clear();
  suspectUntil_ = Deadline::never();
  idle_ = 0;
  return repost(peers, strands);
}

Status IbEnd::idle() {
  return ++idle_ < kIdleTests ? Status() : look();
}

Status IbEnd::take(std::size_t port, const ibv_wc& completion) {
  if (completion.status != IBV_WC_SUCCESS) return failedWith(port, completion);
  const std::size_t pair = link_->pairs->indexOf(port, completion.qp_num);
  if (pair < link_->pairs->count()) completed(pair, completion);
  lastResort_ = false;
  return {};
}

Status IbEnd::failedWith(std::size_t port, const ibv_wc& completion) {
  dropped(completion);
  if (agreement_ != nullptr) {
    link_->control->look();
    TRY(hear());
    if (agreement_->peerHalts()) return {};
  }
  // The first failure is the cause; what was under way besides is flushed after it.
  if (!suspicion_.empty()) return {};
  const std::size_t pair = link_->pairs->indexOf(port, completion.qp_num);
  const std::string said =
      fmt::format("NET/IB: Got completion from peer {} with status={}({}) vendor_err={} while {}, from {}{}; {}.{}",
                  place(), statusName(completion.status), static_cast<int>(completion.status), completion.vendor_err,
                  deed(), link_->pairs->pathText(pair), whatNicSays(*link_->pairs->ports()[port], completion.qp_num),
                  openText(), statusRemedy(completion.status));
  idle_ = kIdleTests;
  lookAgain_ = {};
  const bool outlived = concernsStrandAlone(completion.status) && pair < link_->pairs->count() &&
                        goesOnWithout(link_->pairs->besides(pair), said);
  if (!outlived) {
    suspicion_ = said;
    suspectUntil_ = Deadline::in(kByeBound);
  }
  return look();
}

Result<IbRegistration*> IbEnd::registerMemory(const MemoryRange& range) {
  auto made = std::make_unique<IbRegistration>();
  const auto& ports = link_->pairs->ports();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    // Nothing is sent through it any more.
    if (agreement_ != nullptr && !ports[i]->nic->health().deviceFailure().empty()) continue;
    auto region = ports[i]->nic->registrations().acquire(range);
    if (region.ok()) {
      made->regions[i] = region.value();
      continue;
    }
    const Status why = region.status();
    deregister(made.release()).ignore();
    return why;
  }
  return made.release();
}

Status IbEnd::deregister(IbRegistration* registration) {
  const std::unique_ptr<IbRegistration> owned(registration);
  Status first;
  const auto& ports = link_->pairs->ports();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (owned->regions[i] == nullptr) continue;
    const Status released = ports[i]->nic->registrations().release(owned->regions[i]);
    if (first.ok()) first = released;
  }
  return first;
}

}  // namespace tutti::net::ib
