#include "transport/net/ib/trials.h"

#include <algorithm>
#include <array>

#include "base/log.h"
#include "transport/net/ib/control.h"
#include "transport/net/ib/nic/health.h"
#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/port.h"
#include "transport/net/ib/queue_pairs.h"

namespace tutti::net::ib {

namespace {

using Kind = ControlFrame::Kind;

/// A path that lives longer than this has come back for good: the next failure is another one.
constexpr std::chrono::seconds kSteady{10};
constexpr int kMostPatience = 8;

std::size_t firstOf(const Strands& strands) {
  std::size_t strand = 0;
  while (strand + 1 < strands.size() && !strands[strand]) ++strand;
  return strand;
}

}  // namespace

PathTrials::PathTrials(Agreement::Role role, const QueuePairs& pairs, ControlSocket& control, const IbOptions& options)
    : role_(role), pairs_(pairs), control_(control), options_(options) {
  for (std::size_t strand = 0; strand < pairs.count(); ++strand) paths_.try_emplace(firstOf(pairs.besides(strand)));
}

PathTrials::~PathTrials() = default;

bool PathTrials::portIsUp(std::size_t strand) const {
  const IbPort& port = *pairs_.ports()[pairs_.portOf(strand)];
  SteadyClock::time_point since;
  return !port.nic->health().isDown(port.number, &since) && port.nic->health().deviceFailure().empty();
}

/// What cannot be tried now is tried again later.
Status PathTrials::make(std::size_t strand) {
  const ErrorsAsInfo quiet;
  pair_.reset();
  ASSIGN(pair_, QueuePairs::create({pairs_.ports()[pairs_.portOf(strand)]}, {.count = 1, .sends = 1, .receives = 1},
                                   options_));
  return {};
}

Result<bool> PathTrials::connect(const SideBlock& remote) {
  const ErrorsAsInfo quiet;
  return pair_->connect(remote);
}

void PathTrials::hear(const ControlFrame& frame) {
  if (frame.kind == Kind::Try && role_ == Agreement::Role::Receiver) return answer(frame);
  if (frame.kind != Kind::Answer || step_ != Step::Asking || frame.era != number_) return;
  // The peer knows that its port does not work yet: that tells nothing of the path.
  if (frame.strands.none()) {
    paths_[strand_].next = SteadyClock::now() + options_.recoveryDelay;
    return stop();
  }
  remote_ = frame.side;
  until_ = Deadline::in(options_.tryBound);
  step_ = Step::Connecting;
}

/// The queue pair stays until the next try.
void PathTrials::answer(const ControlFrame& frame) {
  ControlFrame said{.kind = Kind::Answer, .era = frame.era};
  const std::size_t strand = firstOf(frame.strands);
  pair_.reset();
  if (strand < pairs_.count() && portIsUp(strand) && make(strand).ok()) {
    const auto stands = connect(frame.side);
    if (stands.ok() && stands.value()) {
      said.strands = frame.strands;
      said.side = pair_->describe();
    }
  }
  control_.tell(said);
}

void PathTrials::delay(Path& path) const {
  path.next = SteadyClock::now() + options_.recoveryDelay * (1 << std::min(path.patience, kMostPatience));
}

/// What has been lost and what has come back since.
void PathTrials::note(const Strands& lost) {
  const auto now = SteadyClock::now();
  for (auto& [strand, path] : paths_) {
    const bool isLost = (lost & pairs_.besides(strand)).any();
    if (path.lost == isLost) continue;
    path.lost = isLost;
    const bool anew = path.since == SteadyClock::time_point{} || now - path.since > kSteady;
    if (path.lost && anew) {
      path.patience = path.failures = 0;
    } else if (path.lost) {
      ++path.patience;
    }
    path.since = now;
    if (path.lost) delay(path);
  }
}

bool PathTrials::mayTry(std::size_t strand, const Path& path) const {
  return path.lost && path.failures < options_.recoveryTries && SteadyClock::now() >= path.next && portIsUp(strand);
}

void PathTrials::ask(std::size_t strand) {
  strand_ = strand;
  if (!make(strand).ok()) return failed();
  control_.tell({.kind = Kind::Try, .era = ++number_, .strands = pairs_.besides(strand), .side = pair_->describe()});
  until_ = Deadline::in(options_.answerBound);
  step_ = Step::Asking;
}

/// Nothing at all: needs no memory there, and is acknowledged like anything else.
void PathTrials::write() {
  ibv_send_wr nothing{};
  nothing.opcode = IBV_WR_RDMA_WRITE;
  nothing.send_flags = IBV_SEND_SIGNALED;
  nothing.wr.rdma.remote_addr = pairs_.remote().memory;
  nothing.wr.rdma.rkey = pairs_.remote().ports[pairs_.remotePortOf(strand_)].key;
  ibv_send_wr* refused = nullptr;
  if (ibv_post_send((*pair_)[0].get(), &nothing, &refused) != 0) return failed();
  step_ = Step::Writing;
}

void PathTrials::failed() {
  Path& path = paths_[strand_];
  ++path.patience;
  ++path.failures;
  delay(path);
  stop();
  if (path.failures < options_.recoveryTries) return;
  warn("NET/IB : {}: {} to {} is given up: it says that it is up, and has carried nothing in {} tries", options_.who,
       pairs_.ports()[pairs_.portOf(strand_)]->text(), pairs_.remote().who.data(), path.failures);
}

void PathTrials::stop() {
  pair_.reset();
  step_ = Step::Resting;
}

/// Of what was written.
Strands PathTrials::look() {
  std::array<ibv_wc, 1> room;
  const auto over = pair_->poll(0, room);
  if (over.empty()) return {};
  if (over.front().status != IBV_WC_SUCCESS) {
    failed();
    return {};
  }
  stop();
  delay(paths_[strand_]);  // for the case that the agreement leaves it out after all
  return pairs_.besides(strand_);
}

Strands PathTrials::advance(const Strands& lost) {
  if (role_ == Agreement::Role::Receiver) return {};
  note(lost);
  if (step_ == Step::Resting) {
    const auto found =
        std::find_if(paths_.begin(), paths_.end(), [&](const auto& one) { return mayTry(one.first, one.second); });
    if (found != paths_.end()) ask(found->first);
    return {};
  }
  if (!portIsUp(strand_)) {
    stop();
    return {};
  }
  if (step_ == Step::Connecting) {
    const auto stands = connect(remote_);
    if (!stands.ok()) failed();
    if (stands.ok() && stands.value()) write();
  }
  Strands works;
  if (step_ == Step::Writing) works = look();
  if (step_ == Step::Resting || !until_.expired()) return works;
  if (step_ == Step::Asking) {
    stop();
  } else {
    failed();
  }
  return works;
}

}  // namespace tutti::net::ib
