#include "lifecycle/player.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace lifecycle {

namespace {

void sleepUs(long us) {
  std::this_thread::sleep_for(std::chrono::microseconds(us));
}

/// Number of one of the meetings of a deed.
long meeting(const Deed& deed, long which) {
  return kMeetingsOfDeed * deed.number + which;
}

bool failed(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

}  // namespace

ncclConfig_t configOf(const Wish& wish) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = wish.blocking ? 1 : 0;
  config.splitShare = wish.splitShare ? 1 : 0;
  config.shrinkShare = wish.shrinkShare ? 1 : 0;
  config.commName = "a random life";
  return config;
}

Player::Player(Shared& shared, Seat& seat, int rank, int lane, const Limits& limits)
    : shared_(shared), seat_(seat), rank_(rank), lane_(lane), limits_(limits) {
  for (cudaStream_t& stream : streams_) {
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) complain("no stream can be made");
  }
  for (std::size_t i = 0; i < kSlots; ++i) {
    if (!slots_[i].allocate(limits.ranks, streams_[i % streams_.size()])) complain("there is no device memory");
  }
}

Player::~Player() {
  for (Slot& slot : slots_) slot.release();
  for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
}

void Player::complain(const std::string& what) {
  const std::string text = ncclGetLastError(nullptr);
  fail(shared_, rank_, step_,
       (deed_ != nullptr ? describe(*deed_) + ": " : "") + what + (text.empty() ? "" : " (" + text + ")"));
}

void Player::expect(ncclResult_t is, ncclResult_t shall, const std::string& what) {
  if (is != shall) complain(what + " is " + std::to_string(is) + ", not " + std::to_string(shall));
}

void Player::expectStarted(ncclResult_t is, bool blocking, const std::string& what) {
  if (is != ncclSuccess && (blocking || is != ncclInProgress))
    complain(what + " is " + std::to_string(is) + (blocking ? ", not 0" : ", not 0 or 7"));
}

ncclResult_t Player::settled(int comm, std::string_view what) {
  now(std::string(what) + " of communicator " + std::to_string(comm) + " is in progress");
  const ncclComm_t handle = seat_.find(comm);
  if (handle == nullptr) complain("communicator " + std::to_string(comm) + " is NULL");
  ncclResult_t state = ncclInProgress;
  for (;;) {
    expect(ncclCommGetAsyncError(handle, &state), ncclSuccess, "ncclCommGetAsyncError");
    if (state != ncclInProgress) return state;
    sleepUs(50);
  }
}

Slot& Player::freeSlot() {
  Slot& slot = slots_[nextSlot_++ % kSlots];
  if (slot.busy()) complete(slot);
  return slot;
}

/// Waits for an operation as frameworks do, and looks at its result.
void Player::complete(Slot& slot) {
  now("waits for operation " + std::to_string(slot.op().number) + " of communicator " + std::to_string(slot.comm()));
  const ncclComm_t comm = seat_.find(slot.comm());
  while (!slot.done()) {
    ncclResult_t state = ncclSuccess;
    if (comm != nullptr) expect(ncclCommGetAsyncError(comm, &state), ncclSuccess, "ncclCommGetAsyncError");
    if (failed(state)) complain("communicator " + std::to_string(slot.comm()) + " has failed while it works");
    sleepUs(50);
  }
  const std::string wrong = slot.look();
  if (!wrong.empty()) complain("operation " + std::to_string(slot.op().number) + ": " + wrong);
}

void Player::drain(int comm) {
  for (Slot& slot : slots_)
    if (slot.busy() && slot.comm() == comm) complete(slot);
}

/// An operation for which one rank will not come. It comes to one like it before, so that nothing has to be connected.
void Player::beginStuck(const Deed& deed) {
  Op op;
  op.kind = OpKind::AllReduce;
  op.count = 1000;
  op.number = deed.number;
  Slot& slot = freeSlot();
  const int me = deed.comm.rankOf(rank_);
  if (!slot.prepare(op, deed.comm.id, me, deed.comm.size())) complain("CUDA fails");
  expectStarted(slot.call(seat_.find(deed.comm.id)), deed.comm.blocking, "the operation before");
  if (!deed.comm.blocking) expect(settled(deed.comm.id, "the operation before"), ncclSuccess, "its state");
  complete(slot);
}

void Player::launchStuck(const Deed& deed) {
  const int me = deed.comm.rankOf(rank_);
  const bool absent = deed.kind == Kind::ShrinkAbort ? isExcluded(deed) : me == deed.comm.size() - 1;
  if (absent) return;
  Op op;
  op.kind = OpKind::AllReduce;
  op.count = 1000;
  op.number = deed.number;
  stuck_ = &freeSlot();
  if (!stuck_->prepare(op, deed.comm.id, me, deed.comm.size())) complain("CUDA fails");
  expectStarted(stuck_->call(seat_.find(deed.comm.id)), deed.comm.blocking, "the operation that never ends");
  if (!deed.comm.blocking) expect(settled(deed.comm.id, "the operation that never ends"), ncclSuccess, "its state");
  if (deed.number % 2 == 0) sleepUs(500);
}

void Player::endStuck() {
  if (stuck_ == nullptr) return;
  now("waits until an operation that was given up leaves its stream");
  while (!stuck_->done()) sleepUs(50);
  stuck_->forget();
  stuck_ = nullptr;
}

bool Player::isExcluded(const Deed& deed) const {
  const int me = deed.comm.rankOf(rank_);
  return std::count(deed.excluded.begin(), deed.excluded.end(), me) > 0;
}

bool Player::isConcerned(const Deed& deed) const {
  if (deed.kind == Kind::ShrinkAbort || deed.kind == Kind::Revoke) return isMember(deed.comm);
  return true;
}

void Player::begin(const Deed& deed) {
  const int participants = static_cast<int>(deed.participants().size());
  if (deed.kind == Kind::Init || deed.kind == Kind::Grow) sayId(deed);
  if (deed.kind == Kind::Shrink || deed.kind == Kind::Suspend) drain(deed.comm.id);
  if (deed.kind == Kind::Work) {
    Slot*& slot = slotOf_[deed.number];
    slot = &freeSlot();
    if (!slot->prepare(deed.op, deed.comm.id, deed.comm.rankOf(rank_), deed.comm.size())) complain("CUDA fails");
  }
  if (deed.kind != Kind::Abort && deed.kind != Kind::Revoke && deed.kind != Kind::ShrinkAbort) return;
  drain(deed.comm.id);
  for (const Comm& comm : deed.doomed) drain(comm.id);
  if (deed.stuck && isMember(deed.comm)) beginStuck(deed);
  now("waits until all are ready for: " + describe(deed));
  meet(shared_, meeting(deed, 0), participants);
  if (deed.stuck && isMember(deed.comm)) launchStuck(deed);
  if (deed.stuck) meet(shared_, meeting(deed, 1), participants);
  // Whoever comes first differs from time to time.
  sleepUs((deed.number * 7919 + rank_ * 104729) % 1500);
}

ncclResult_t Player::call(const Deed& deed) {
  now(describe(deed));
  if (!isConcerned(deed)) return ncclSuccess;
  switch (deed.kind) {
    case Kind::Init:
      return init(deed);
    case Kind::Grow:
      return grow(deed);
    case Kind::Split:
      return split(deed);
    case Kind::Shrink:
    case Kind::ShrinkAbort:
      return shrink(deed);
    case Kind::Work:
      return slotOf_[deed.number]->call(seat_.find(deed.comm.id));
    default:
      return end(deed);
  }
}

void Player::finish(const Deed& deed) {
  ++counts_[static_cast<std::size_t>(deed.kind)];
  const Comm& comm = deed.comm;
  const bool carried = deed.kind != Kind::Init && deed.kind != Kind::Grow && deed.kind != Kind::Abort &&
                       deed.kind != Kind::Destroy && deed.kind != Kind::ShrinkAbort;
  if (carried && isConcerned(deed)) expect(settled(comm.id, nameOf(deed.kind)), ncclSuccess, "the state afterwards");
  if (deed.kind == Kind::ShrinkAbort && isMember(comm) && !isExcluded(deed)) settled(comm.id, nameOf(deed.kind));
  if (deed.kind == Kind::Work) {
    Slot& slot = *slotOf_[deed.number];
    slotOf_.erase(deed.number);
    if (!deed.op.patient) complete(slot);
  }
  if (deed.kind == Kind::Init) finishBirth(deed, comm);
  for (const Comm& born : deed.born)
    if (born.rankOf(rank_) >= 0) finishBirth(deed, born);
  if (deed.kind == Kind::Shrink) {
    now("waits until the survivors are done");
    meet(shared_, meeting(deed, 2), comm.size());
  }
  if (deed.kind == Kind::ShrinkAbort || deed.kind == Kind::Revoke) finishFamily(deed);
  if (deed.kind == Kind::Suspend || deed.kind == Kind::Resume) checkSuspended(deed);
  if (deed.kind == Kind::Destroy) seat_.drop(comm.id);
}

void Player::play(const Step& step) {
  step_ = step.number;
  grouped_ = step.grouped;
  std::vector<const Deed*> mine;
  for (const Deed& deed : step.lanes[lane_]) {
    const std::vector<int> who = deed.participants();
    const bool takesPart = std::count(who.begin(), who.end(), rank_) > 0;
    if (takesPart) mine.push_back(&deed);
    if (takesPart && !grouped_) play(deed);
  }
  if (grouped_ && !mine.empty()) playGroup(mine);
}

void Player::playGroup(const std::vector<const Deed*>& mine) {
  for (const Deed* deed : mine) begin(*(deed_ = deed));
  expect(ncclGroupStart(), ncclSuccess, "ncclGroupStart");
  for (const Deed* deed : mine) {
    deed_ = deed;
    expectStarted(call(*deed), deed->comm.blocking, "the call in a group");
  }
  now("ends a group with " + describe(*deed_));
  const bool blocking = deed_->comm.blocking || deed_->kind == Kind::Destroy;
  expectStarted(ncclGroupEnd(), blocking, "ncclGroupEnd");
  for (const Deed* deed : mine) finish(*(deed_ = deed));
}

void Player::play(const Deed& deed) {
  deed_ = &deed;
  const bool whole = deed.kind == Kind::Wrong || deed.kind == Kind::Record || deed.kind == Kind::Replay ||
                     deed.kind == Kind::Drop || deed.kind == Kind::Register || deed.kind == Kind::Deregister;
  if (!whole) {
    begin(deed);
    const ncclResult_t result = call(deed);
    const bool blocking = deed.kind == Kind::Grow ? deed.born.front().blocking : deed.comm.blocking;
    expectStarted(result, blocking, "the call");
    return finish(deed);
  }
  ++counts_[static_cast<std::size_t>(deed.kind)];
  if (deed.kind == Kind::Wrong) makeWrongCall(deed);
  if (deed.kind == Kind::Record) record(deed);
  if (deed.kind == Kind::Replay) replay(deed);
  if (deed.kind == Kind::Drop) dropGraph(deed);
  if (deed.kind == Kind::Register) registerBuffer(deed);
  if (deed.kind == Kind::Deregister) deregisterBuffer(deed);
}

}  // namespace lifecycle
