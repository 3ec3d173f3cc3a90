#include "comm/ending/departures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/loop/peer_news.h"
#include "comm/connect/channels.h"
#include "comm/diagnosis/call_exchange.h"
#include "comm/diagnosis/progress_scan.h"
#include "comm/ending/parting.h"
#include "comm/ending/rank_account.h"
#include "comm/launch/device_pool.h"
#include "comm/launch/launch.h"
#include "comm/state/communicator.h"

namespace tutti::comm {

namespace {

/// What is under way may be an operation before the one that cannot end, and about to be done.
constexpr milliseconds kGrace{200};

}  // namespace

struct DepartureWatch::Gone {
  int rank = -1;
  bool exited = false;
  std::optional<RankAccount> account;
};

Result<std::unique_ptr<DepartureWatch>> DepartureWatch::create(ncclComm& comm) {
  ASSIGN(MovementSweep sweep, MovementSweep::create(*comm.parts.device->device));
  return std::unique_ptr<DepartureWatch>(new DepartureWatch(comm, std::make_unique<MovementSweep>(std::move(sweep))));
}

DepartureWatch::DepartureWatch(ncclComm& comm, std::unique_ptr<MovementSweep> sweep)
    : comm_(comm), sweep_(std::move(sweep)) {}

DepartureWatch::~DepartureWatch() = default;

void DepartureWatch::hear() {
  for (const bootstrap::Departure& departure : comm_.parts.bootstrap->takeDepartures()) {
    gone_.push_back({departure.rank, departure.exited, decodeAccount(departure.account, comm_.identity.rank)});
    const std::optional<RankAccount>& account = gone_.back().account;
    comm_.calls->hearLast(departure.rank,
                          account ? std::span<const std::byte>(account->calls) : std::span<const std::byte>());
    if (account && account->closes) partFrom(comm_, departure.rank);
  }
}

void DepartureWatch::rest() {
  neededSince_.reset();
  sweep_->reset();
}

/// Whether a rank that may be waited for is.
bool DepartureWatch::confirmed(Time now, Need need) {
  if (need == Need::Yes) {
    if (!neededSince_) neededSince_ = now;
    return now - *neededSince_ >= kGrace;
  }
  const auto hasLeft = [&bootstrap = *comm_.parts.bootstrap](int rank) { return bootstrap.hasLeft(rank); };
  // Only stillness tells, and what is under way may be slow: as long as silence has to last to count as a death.
  const MovementSweep::State state =
      sweep_->follow(now, *comm_.parts.channels, comm_.parts.collNetTask(), hasLeft, comm_.options.peerTimeout);
  if (state == MovementSweep::State::Moves) sweep_->reset();
  return state == MovementSweep::State::Still;
}

void DepartureWatch::tick(Time now, bool kernelsRun) {
  if (!kernelsRun || gone_.empty()) return rest();
  const RankAccount own = accountOf(*comm_.parts.launcher);
  const Gone* suspect = nullptr;
  for (const Gone& gone : gone_) {
    const Need need = needFor(own, comm_.identity.rank, gone.account, gone.rank);
    // One that was destroyed after graphs were captured may have done all it was to do: the reports of stalls tell.
    if (need == Need::No || (need == Need::Unknown && !gone.exited)) continue;
    if (need == Need::Yes) {
      if (confirmed(now, need)) fail(gone);
      return;
    }
    if (suspect == nullptr) suspect = &gone;
  }
  neededSince_.reset();
  if (suspect == nullptr) return sweep_->reset();
  if (confirmed(now, Need::Unknown)) fail(*suspect);
}

/// The first collective that it has not called, for a text; empty where that is not known.
std::string DepartureWatch::missedBy(const Gone& gone) const {
  const std::optional<CallWord> word = gone.account ? wordFrom(gone.account->calls) : std::nullopt;
  const CallLog& own = comm_.calls->log();
  if (!gone.account || (!word && gone.account->collectives > 0)) return {};
  const std::uint64_t called = word ? word->count : 0;
  const std::string call = own.describe(called + 1);
  return call.empty() ? call : fmt::format(", the {} collective ({}),", ordinal(called + 1), call);
}

void DepartureWatch::fail(const Gone& gone) {
  const Status why = failedByDeparture(comm_, gone.rank, comm_.parts.launcher->lastLaunch() + missedBy(gone));
  failComm(comm_, why, faultOnConnection(why));
}

}  // namespace tutti::comm
