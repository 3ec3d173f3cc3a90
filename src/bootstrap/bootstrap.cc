#include "bootstrap/bootstrap.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/log.h"
#include "base/threads/activity.h"
#include "bootstrap/id_use.h"
#include "bootstrap/join_options.h"
#include "bootstrap/joiner.h"
#include "bootstrap/kin.h"
#include "bootstrap/link/crypto.h"
#include "bootstrap/loop/connection_loop.h"
#include "bootstrap/loop/peer_news.h"
#include "bootstrap/settings.h"
#include "bootstrap/tree_repair.h"

namespace tutti::bootstrap {
namespace {

enum class Op : std::uint8_t { AllGather = 1, Barrier = 2, Broadcast = 3 };

const char* nameOf(Op op) {
  return op == Op::AllGather ? "allGather" : op == Op::Barrier ? "barrier" : "broadcast";
}

/// Ranks deeper in the tree give up first, so that the error names whom it is really about.
constexpr int kDeepest = 10;
constexpr milliseconds kPerLevel{200};
constexpr milliseconds kConnectTime{30'000};

}  // namespace

struct Bootstrap::State {
  Joined joined;
  std::int32_t sequence = 1;
  std::atomic<bool> left = false;
  int nRoots = 1;
  int nSplits = 0;
  const char* call = "";                  ///< in which this rank meets the others
  Deadline reportAt = Deadline::never();  ///< when to name those who have not come to it
  std::unique_ptr<TreeRepair> repair;     ///< once all are known

  ConnectionLoop& loop() const { return *joined.loop; }
  int parent() const { return joined.place.parent; }

  Result<Bytes> take(Op op, int from, std::size_t bytes, milliseconds slack);
  void give(Op op, int to, const SharedBytes& payload) {
    (void)loop().send(to, FrameType::Collective, sequence, payload, static_cast<std::uint8_t>(op));
  }
  Status gatherUp(Op op, std::span<std::byte> blocks);
  Result<SharedBytes> spreadDown(Op op, SharedBytes fromTop, std::size_t bytes);
  Status usable() const;
  void tendTree() {
    repair = std::make_unique<TreeRepair>(joined, nRoots);
    loop().tendTree([this] { repair->begin(); });
  }
};

Status Bootstrap::State::usable() const {
  if (left) return fail(ncclInvalidUsage, "Bootstrap: rank {} has already left this communicator", joined.rank);
  return loop().aborted();
}

Result<Bytes> Bootstrap::State::take(Op op, int from, std::size_t bytes, milliseconds slack) {
  const Deadline deadline = Deadline::in(joined.timeout + slack);
  const auto arrivesBy = [&](Deadline when) {
    return loop().arrivesBy(Channel::Collective, from, sequence, when.earlierOf(deadline));
  };
  if (!reportAt.isNever() && !arrivesBy(reportAt)) {
    reportAt = Deadline::never();
    loop().askWhoIsPresent();
    if (!arrivesBy(Deadline::in(kRollCall))) loop().reportAbsent(call);
  }
  const WaitNote note(nameOf(op), from);
  ASSIGN(Frame frame, loop().await(Channel::Collective, from, sequence, deadline,
                                   [&] { return fmt::format("{} in its {}", loop().describe(from), nameOf(op)); }));
  if (frame.header.op != static_cast<std::uint8_t>(op) || frame.payload.size() != bytes) {
    return fail(ncclInternalError,
                "Bootstrap: {} and rank {} are out of step: {} bytes of operation {} came, {} of {} were "
                "expected; do all ranks make the same calls in the same order?",
                loop().describe(from), joined.rank, frame.payload.size(), frame.header.op, bytes, nameOf(op));
  }
  return std::move(frame.payload);
}

Status Bootstrap::State::gatherUp(Op op, std::span<std::byte> blocks) {
  const std::size_t block = blocks.size() / static_cast<std::size_t>(joined.nRanks);
  const auto part = [&](RankRange ranks) {
    return blocks.subspan(static_cast<std::size_t>(ranks.begin) * block,
                          static_cast<std::size_t>(ranks.count()) * block);
  };
  for (const RankRange& child : joined.place.children) {
    const std::span<std::byte> target = part(child);
    ASSIGN(const Bytes bytes, take(op, child.begin, target.size(), kPerLevel * (kDeepest - joined.place.depth)));
    if (!bytes.empty()) std::memcpy(target.data(), bytes.data(), bytes.size());
  }
  if (parent() < 0) return Status();
  const std::span<std::byte> own = part(joined.place.subtree);
  give(op, parent(), std::make_shared<const Bytes>(own.begin(), own.end()));
  return Status();
}

Result<SharedBytes> Bootstrap::State::spreadDown(Op op, SharedBytes fromTop, std::size_t bytes) {
  if (parent() >= 0) {
    ASSIGN(Bytes received, take(op, parent(), bytes, kPerLevel * 2 * kDeepest));
    fromTop = std::make_shared<const Bytes>(std::move(received));
  }
  for (const RankRange& child : joined.place.children) give(op, child.begin, fromTop);
  ++sequence;
  return fromTop;
}

Bootstrap::Attendance::Attendance(Bootstrap& at, const char* name, milliseconds reportAfter) : at_(at) {
  State& state = *at.state_;
  state.call = name;
  if (reportAfter > milliseconds(0)) state.reportAt = Deadline::in(reportAfter);
  state.loop().enterCall(state.sequence);
}

Bootstrap::Attendance::~Attendance() {
  at_.state_->loop().leaveCall();
  at_.state_->reportAt = Deadline::never();
}

Bootstrap::Bootstrap(std::unique_ptr<State> state) : state_(std::move(state)) {}
Bootstrap::~Bootstrap() {
  leave();
}

Result<std::unique_ptr<Bootstrap>> Bootstrap::join(const JoinOptions& options, Kin kin) {
  auto state = std::make_unique<State>();
  ASSIGN(state->joined, joinKin(options, std::move(kin)));
  state->tendTree();
  return std::unique_ptr<Bootstrap>(new Bootstrap(std::move(state)));
}

Result<std::unique_ptr<Bootstrap>> Bootstrap::join(const JoinOptions& options) {
  ASSIGN(Joined joined, joinRanks(options));
  const std::shared_ptr<ConnectionLoop> loop = joined.loop;
  auto state = std::make_unique<State>();
  state->joined = std::move(joined);
  std::unique_ptr<Bootstrap> self(new Bootstrap(std::move(state)));
  self->state_->nRoots = static_cast<int>(options.ids.size());

  // The first collective hands every rank the addresses and names of all others.
  std::vector<RankEntry> table(static_cast<std::size_t>(options.nRanks));
  table[static_cast<std::size_t>(options.rank)] = self->state_->joined.self;
  if (const Status status = self->allGather(std::as_writable_bytes(std::span(table))); !status.ok()) {
    loop->announceLastError(status);
    failUse(self->state_->joined, status);
    return status;
  }
  loop->setTable(std::move(table));
  self->state_->tendTree();
  loop->sendToRoot(FrameType::Done, {});
  self->state_->joined.use->release();
  return self;
}

int Bootstrap::rank() const {
  return state_->joined.rank;
}
int Bootstrap::size() const {
  return state_->joined.nRanks;
}

Status Bootstrap::allGather(std::span<std::byte> blocks) {
  TRY(state_->usable());
  if (blocks.size() % static_cast<std::size_t>(size()) != 0) {
    return fail(ncclInternalError, "Bootstrap: {} bytes cannot be divided among {} ranks", blocks.size(), size());
  }
  TRY(state_->gatherUp(Op::AllGather, blocks));
  SharedBytes top;
  if (state_->parent() < 0) top = std::make_shared<const Bytes>(blocks.begin(), blocks.end());
  ASSIGN(const SharedBytes all, state_->spreadDown(Op::AllGather, std::move(top), blocks.size()));
  if (state_->parent() >= 0) std::copy(all->begin(), all->end(), blocks.begin());
  return Status();
}

Result<Kin> Bootstrap::split(int color, int key, milliseconds reportAfter) {
  TRY(state_->usable());
  const Joined& joined = state_->joined;
  ASSIGN(Introduction self, introduce(joined));
  std::vector<Relative> all(static_cast<std::size_t>(size()));
  all[static_cast<std::size_t>(rank())] = {++state_->nSplits, color, key, 0, self.entry};
  {
    const Attendance here(*this, "ncclCommSplit", reportAfter);
    TRY(allGather(std::as_writable_bytes(std::span(all))));
  }
  ASSIGN(Kin kin, kinOf(all, rank(), joined.key));
  kin.listener = std::move(self.listener);
  if (color == NCCL_SPLIT_NOCOLOR) kin.rank = -1;
  return kin;
}

Result<Kin> Bootstrap::shrink(std::span<const int> survivors, const Abort& abort, milliseconds reportAfter) {
  return findSurvivors(state_->joined, survivors, abort, reportAfter);
}

void Bootstrap::invite(const ncclUniqueId& id) {
  state_->loop().invite(std::make_shared<const Bytes>(encodeValue(id)));
}

std::shared_ptr<Invitations> Bootstrap::invitations() const {
  return state_->loop().invitations();
}

Status Bootstrap::barrier() {
  TRY(state_->usable());
  TRY(state_->gatherUp(Op::Barrier, {}));
  TRY(state_->spreadDown(Op::Barrier, std::make_shared<const Bytes>(), 0));
  return Status();
}

Status Bootstrap::broadcast(int root, std::span<std::byte> data) {
  TRY(state_->usable());
  if (root < 0 || root >= size())
    return fail(ncclInvalidArgument, "Bootstrap: broadcast from rank {} of {}", root, size());
  const TreePlace& place = state_->joined.place;
  // First up from the root of the broadcast to rank 0, then down to everybody.
  SharedBytes top;
  if (root == rank()) top = std::make_shared<const Bytes>(data.begin(), data.end());
  for (const RankRange& child : place.children) {
    if (!child.contains(root)) continue;
    ASSIGN(Bytes bytes, state_->take(Op::Broadcast, child.begin, data.size(), kPerLevel * (kDeepest - place.depth)));
    top = std::make_shared<const Bytes>(std::move(bytes));
  }
  if (place.parent >= 0 && top) state_->give(Op::Broadcast, place.parent, top);
  ASSIGN(const SharedBytes all, state_->spreadDown(Op::Broadcast, std::move(top), data.size()));
  std::copy(all->begin(), all->end(), data.begin());
  return Status();
}

Status Bootstrap::send(int peer, int tag, std::span<const std::byte> message) {
  TRY(state_->usable());
  if (peer < 0 || peer >= size()) return fail(ncclInvalidArgument, "Bootstrap: send to rank {} of {}", peer, size());
  TRY(state_->loop().checkFailure());
  if (!state_->loop().reaches(peer))
    TRY(connectPeer(state_->joined, peer, Deadline::in(std::min(state_->joined.timeout, kConnectTime))));
  if (!state_->loop().send(peer, FrameType::Message, tag,
                           std::make_shared<const Bytes>(message.begin(), message.end()))) {
    return fail(ncclRemoteError, "Bootstrap: the connection from rank {} to {} is gone", rank(), describe(peer));
  }
  return Status();
}

Status Bootstrap::recv(int peer, int tag, std::span<std::byte> message) {
  TRY(state_->usable());
  if (peer < 0 || peer >= size())
    return fail(ncclInvalidArgument, "Bootstrap: receive from rank {} of {}", peer, size());
  const WaitNote note("a message", peer);
  ASSIGN(const Frame frame, state_->loop().await(Channel::User, peer, tag, Deadline::in(timeout()), [&] {
    return fmt::format("a message with tag {} from {}", tag, describe(peer));
  }));
  if (frame.payload.size() != message.size()) {
    return fail(ncclInternalError, "Bootstrap: message with tag {} from {} has {} bytes, rank {} expected {}", tag,
                describe(peer), frame.payload.size(), rank(), message.size());
  }
  std::copy(frame.payload.begin(), frame.payload.end(), message.begin());
  return Status();
}

bool Bootstrap::arrived(int peer, int tag) {
  const bool named = peer >= 0 && peer < size();
  return state_->left || !named || state_->loop().arrived(Channel::User, peer, tag);
}

milliseconds Bootstrap::timeout() const {
  return state_->joined.timeout;
}

void Bootstrap::abort(Status why) {
  state_->loop().abort(why);
}

void Bootstrap::announceFailure(Status why, const std::string& text, bool seenOf) {
  state_->loop().announce(why, text, seenOf);
}

void Bootstrap::resume() {
  state_->loop().resume();
}

void Bootstrap::announceAbort(Status why) {
  state_->loop().abort(why);
  state_->loop().announceAbort();
}

void Bootstrap::announceState(std::span<const std::byte> state) {
  if (state.size() > kMaxState) return;
  state_->loop().announceState(std::make_shared<const Bytes>(state.begin(), state.end()));
}

void Bootstrap::beginWait() {
  state_->loop().wait(1);
}

void Bootstrap::endWait() {
  state_->loop().wait(-1);
}

int Bootstrap::parentOf(int rank) const {
  return treePlace(size(), state_->nRoots, rank).parent;
}

Status Bootstrap::lost() const {
  return state_->loop().failure();
}

void Bootstrap::leave(std::span<const std::byte> account) {
  if (state_->left.exchange(true)) return;
  if (state_->repair) state_->repair->stop();
  state_->loop().stop(account);
}

void Bootstrap::announceExit(std::span<const std::byte> account) {
  if (!state_->left) state_->loop().announceExit(account);
}

bool Bootstrap::awaitSaid(Deadline deadline) {
  return state_->left || state_->loop().awaitSaid(deadline);
}

std::string Bootstrap::describe(int rank) const {
  return state_->loop().describe(rank);
}
std::uint64_t Bootstrap::commHash() const {
  return state_->joined.commHash;
}
std::array<std::byte, 32> Bootstrap::keyFor(std::string_view purpose) const {
  return deriveKey(state_->joined.key, purpose);
}
bool Bootstrap::hasLeft(int rank) const {
  return state_->left || state_->loop().hasLeft(rank);
}

bool Bootstrap::hasExited(int rank) const {
  return state_->loop().hasExited(rank);
}
std::vector<Departure> Bootstrap::takeDepartures() {
  return state_->loop().takeDepartures();
}
std::string Bootstrap::describeDeparture(int rank) const {
  return state_->loop().describeDeparture(rank);
}

}  // namespace tutti::bootstrap
