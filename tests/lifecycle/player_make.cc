// How a rank makes communicators: init, split, shrink, grow.
#include <algorithm>

#include "lifecycle/player.h"

namespace lifecycle {

/// The rank that makes the unique id of a new communicator tells it to the others.
void Player::sayId(const Deed& deed) {
  const bool makes = deed.kind == Kind::Init ? deed.comm.members.front() == rank_ : deed.who == rank_;
  if (!makes) return;
  now("makes an id");
  ncclUniqueId id;
  if (deed.kind == Kind::Init) {
    expect(ncclGetUniqueId(&id), ncclSuccess, "ncclGetUniqueId");
  } else {
    expect(ncclCommGetUniqueId(seat_.find(deed.comm.id), &id), ncclSuccess, "ncclCommGetUniqueId");
  }
  publish(shared_, deed.number, id);
}

ncclResult_t Player::init(const Deed& deed) {
  now("waits for the id of: " + describe(deed));
  ncclUniqueId id = await(shared_, deed.number);
  now(describe(deed));
  ncclComm_t& handle = seat_.handle(deed.comm.id);
  const int me = deed.comm.rankOf(rank_);
  if (!deed.wish.given && deed.which == 0) return ncclCommInitRank(&handle, deed.comm.size(), id, me);
  ncclConfig_t config = configOf(deed.wish);
  ncclConfig_t* const wanted = deed.wish.given ? &config : nullptr;
  if (deed.which == 1) return ncclCommInitRankScalable(&handle, deed.comm.size(), me, 1, &id, wanted);
  return ncclCommInitRankConfig(&handle, deed.comm.size(), id, me, wanted);
}

ncclResult_t Player::split(const Deed& deed) {
  const auto me = static_cast<std::size_t>(deed.comm.rankOf(rank_));
  const int color = deed.colors[me];
  ncclComm_t unused = reinterpret_cast<ncclComm_t>(this);
  ncclComm_t* place = &unused;
  for (const Comm& born : deed.born)
    if (born.rankOf(rank_) >= 0) place = &seat_.handle(born.id);
  ncclConfig_t config = configOf(deed.wish);
  const ncclResult_t result =
      ncclCommSplit(seat_.find(deed.comm.id), color, deed.keys[me], place, deed.wish.given ? &config : nullptr);
  if (unused != nullptr && place == &unused) complain("a rank without a color does not get NULL");
  return result;
}

ncclResult_t Player::shrink(const Deed& deed) {
  if (isExcluded(deed)) return ncclSuccess;
  ncclConfig_t config = configOf(deed.wish);
  std::vector<int> list = deed.excluded;
  const int flags = deed.kind == Kind::ShrinkAbort ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT;
  return ncclCommShrink(seat_.find(deed.comm.id), list.data(), static_cast<int>(list.size()),
                        &seat_.handle(deed.born.front().id), deed.wish.given ? &config : nullptr, flags);
}

ncclResult_t Player::grow(const Deed& deed) {
  ncclConfig_t config = configOf(deed.wish);
  ncclConfig_t* const wanted = deed.wish.given ? &config : nullptr;
  const Comm& born = deed.born.front();
  ncclComm_t& handle = seat_.handle(born.id);
  if (isMember(deed.comm)) {
    const ncclUniqueId id = deed.who == rank_ ? await(shared_, deed.number) : ncclUniqueId{};
    return ncclCommGrow(seat_.find(deed.comm.id), born.size(), deed.who == rank_ ? &id : nullptr, -1, &handle, wanted);
  }
  now("waits for the id of: " + describe(deed));
  const ncclUniqueId id = await(shared_, deed.number);
  now(describe(deed));
  return ncclCommGrow(nullptr, born.size(), &id, born.rankOf(rank_), &handle, wanted);
}

/// What is true of every new communicator.
void Player::finishBirth(const Deed& deed, const Comm& born) {
  expect(settled(born.id, nameOf(deed.kind)), ncclSuccess, "the state of the new communicator");
  const ncclComm_t handle = seat_.find(born.id);
  int size = -1;
  int rank = -1;
  int device = -1;
  int current = -2;
  expect(ncclCommCount(handle, &size), ncclSuccess, "ncclCommCount");
  expect(ncclCommUserRank(handle, &rank), ncclSuccess, "ncclCommUserRank");
  expect(ncclCommCuDevice(handle, &device), ncclSuccess, "ncclCommCuDevice");
  if (cudaGetDevice(&current) != cudaSuccess || device != current)
    complain("it is on device " + std::to_string(device));
  if (size != born.size() || rank != born.rankOf(rank_)) {
    complain("the new communicator has rank " + std::to_string(rank) + " of " + std::to_string(size) + ", not " +
             std::to_string(born.rankOf(rank_)) + " of " + std::to_string(born.size()));
  }
}

}  // namespace lifecycle
