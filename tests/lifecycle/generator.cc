#include "lifecycle/generator.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "lifecycle/library_features.h"

namespace lifecycle {

namespace {

constexpr std::array<std::pair<Kind, int>, kKinds> kWeights = {{{Kind::Init, 6},
                                                                {Kind::Split, 12},
                                                                {Kind::Shrink, 4},
                                                                {Kind::ShrinkAbort, 3},
                                                                {Kind::Grow, 4},
                                                                {Kind::Revoke, 3},
                                                                {Kind::Finalize, 3},
                                                                {Kind::Destroy, 9},
                                                                {Kind::Abort, 4},
                                                                {Kind::Work, 50},
                                                                {Kind::Record, 4},
                                                                {Kind::Replay, 6},
                                                                {Kind::Drop, 3},
                                                                {Kind::Suspend, 3},
                                                                {Kind::Resume, 8},
                                                                {Kind::Register, 7},
                                                                {Kind::Deregister, 9},
                                                                {Kind::Wrong, 12}}};

constexpr std::size_t kMostBytes = 1 << 16;  // of one rank's part of an operation

std::size_t bytesOf(ncclDataType_t type) {
  return type == ncclUint8 ? 1 : type == ncclInt32 || type == ncclFloat32 ? 4 : 8;
}

void shuffle(differential::Dice& dice, std::vector<int>& numbers) {
  for (std::size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[dice.below(i)]);
}

}  // namespace

Deed Generator::begin(Kind kind, const Comm& comm) {
  Deed deed;
  deed.kind = kind;
  deed.number = deeds_++;
  deed.comm = comm;
  return deed;
}

std::vector<Comm> Generator::alive(int lane, State state) const {
  std::vector<Comm> found;
  for (const Comm& comm : live_)
    if ((lane < 0 || comm.lane == lane) && comm.state == state) found.push_back(comm);
  return found;
}

bool Generator::alone(const Comm& comm) const {
  return std::count_if(live_.begin(), live_.end(), [&](const Comm& one) { return one.family == comm.family; }) == 1;
}

std::vector<Comm> Generator::relatives(const Comm& comm) const {
  std::vector<Comm> found;
  for (const Comm& one : live_)
    if (one.family == comm.family && one.id != comm.id) found.push_back(one);
  return found;
}

/// Its buffer must not be freed as long as it is registered.
bool Generator::kept(const Recording& recording) const {
  return std::any_of(registrations_.begin(), registrations_.end(),
                     [&](const Registration& one) { return one.recording == recording.id; });
}

/// Whether graphs have operations of others of the family, which may have ended.
bool Generator::graphsOfOthers(const Comm& comm) const {
  return std::any_of(recordings_.begin(), recordings_.end(),
                     [&](const Recording& one) { return one.comm.family == comm.family && one.comm.id != comm.id; });
}

void Generator::noteWork(const Comm& comm) {
  for (Comm& one : live_)
    if (one.id == comm.id) one.worked = true;
}

void Generator::put(const Comm& comm) {
  const auto found = std::find_if(live_.begin(), live_.end(), [&](const Comm& one) { return one.id == comm.id; });
  if (found == live_.end())
    live_.push_back(comm);
  else
    *found = comm;
}

void Generator::remove(int id) {
  std::erase_if(live_, [&](const Comm& one) { return one.id == id; });
  std::erase_if(registrations_, [&](const Registration& one) { return one.comm == id; });
}

/// Also those of relatives that have ended.
void Generator::spoilRecordings(const Comm& comm) {
  for (Recording& recording : recordings_)
    if (recording.comm.family == comm.family) recording.playable = false;
}

Kind Generator::pickKind() {
  int sum = 0;
  for (const auto& [kind, weight] : kWeights) sum += weight;
  int left = dice_.below(sum);
  for (const auto& [kind, weight] : kWeights) {
    if (left < weight) return kind;
    left -= weight;
  }
  return Kind::Work;
}

Op Generator::makeOp(const Comm& comm) {
  static constexpr std::array kTypes = {ncclInt32, ncclFloat32, ncclInt64, ncclFloat64, ncclUint8};
  static constexpr std::array kFewTypes = {ncclInt32, ncclFloat32};
  static constexpr std::array kOperators = {ncclSum, ncclMax, ncclMin};
  Op op;
  op.number = ops_++;
  op.kind = static_cast<OpKind>(dice_.below(static_cast<int>(OpKind::Scatter) + 1));
  op.type = limits_.fewKernels ? dice_.pick(kFewTypes) : dice_.pick(kTypes);
  op.op = limits_.fewKernels && op.type == ncclInt32 ? ncclSum : dice_.pick(kOperators);
  op.root = dice_.below(comm.size());
  const std::size_t most = kMostBytes / bytesOf(op.type);
  op.count = dice_.chance(50) ? dice_.between(1, 64) : dice_.between(1, dice_.chance(50) ? 2000 : most);
  op.patient = dice_.chance(40);
  return op;
}

Wish Generator::makeWish() {
  Wish wish;
  wish.given = dice_.chance(60);
  if (!wish.given) return wish;
  wish.blocking = dice_.chance(60);
  wish.splitShare = dice_.chance(40);
  wish.shrinkShare = dice_.chance(40);
  return wish;
}

/// Without a configuration it is as its parent.
Comm Generator::makeChild(const Comm& parent, const Wish& wish, bool shared, bool parallel) {
  Comm child;
  child.id = comms_++;
  child.blocking = wish.given ? wish.blocking : parent.blocking;
  child.splitShare = wish.given ? wish.splitShare : parent.splitShare;
  child.shrinkShare = wish.given ? wish.shrinkShare : parent.shrinkShare;
  child.depth = parent.depth + 1;
  child.family = shared ? parent.family : families_++;
  child.lane = shared || parallel ? parent.lane : dice_.below(kLanes);
  return child;
}

bool Generator::makeInit(int lane, bool parallel, Deed& deed) {
  if (live_.size() >= limits_.comms) return false;
  Wish wish = makeWish();
  Comm comm = makeChild(Comm{}, wish, false, false);
  comm.depth = 0;
  comm.lane = lane >= 0 ? lane : dice_.below(kLanes);
  (void)parallel;
  std::vector<int> ranks;
  for (int rank = 0; rank < limits_.ranks; ++rank) ranks.push_back(rank);
  shuffle(dice_, ranks);
  const int size = dice_.chance(50) ? limits_.ranks : dice_.below(limits_.ranks) + 1;
  comm.members.assign(ranks.begin(), ranks.begin() + size);
  deed = begin(Kind::Init, comm);
  deed.wish = wish;
  deed.which = dice_.below(3);
  put(comm);
  return true;
}

bool Generator::makeSplit(const Comm& parent, bool parallel, Deed& deed) {
  if (!has(kSplit) || live_.size() >= limits_.comms || parent.depth >= limits_.depth) return false;
  deed = begin(Kind::Split, parent);
  deed.wish = makeWish();
  const bool shared = parent.splitShare && parent.state != State::Revoked;
  const int colors = dice_.below(3) + 1;
  std::map<int, std::vector<std::pair<int, int>>> byColor;  // key and rank in the parent
  for (int rank = 0; rank < parent.size(); ++rank) {
    const int color = dice_.chance(15) ? NCCL_SPLIT_NOCOLOR : dice_.below(colors) * 7;
    const int key = dice_.below(4) - 1;
    deed.colors.push_back(color);
    deed.keys.push_back(key);
    if (color != NCCL_SPLIT_NOCOLOR) byColor[color].emplace_back(key, rank);
  }
  for (auto& [color, ranks] : byColor) {
    std::stable_sort(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    Comm child = makeChild(parent, deed.wish, shared, parallel);
    for (const auto& one : ranks) child.members.push_back(parent.members[static_cast<std::size_t>(one.second)]);
    deed.born.push_back(child);
    put(child);
  }
  return true;
}

bool Generator::makeShrink(Kind kind, const Comm& parent, bool parallel, Deed& deed) {
  if (!has(kShrink) || live_.size() >= limits_.comms || parent.size() < 2) return false;
  deed = begin(kind, parent);
  if (kind == Kind::ShrinkAbort && !doomRelatives(parent, deed)) return false;
  deed.wish = makeWish();
  std::vector<int> ranks;
  for (int rank = 0; rank < parent.size(); ++rank) ranks.push_back(rank);
  shuffle(dice_, ranks);
  deed.excluded.assign(ranks.begin(), ranks.begin() + dice_.below(parent.size() - 1) + 1);
  const bool shared = kind == Kind::Shrink && parent.shrinkShare && parent.state != State::Revoked;
  Comm child = makeChild(parent, deed.wish, shared, parallel);
  for (int rank = 0; rank < parent.size(); ++rank) {
    if (std::count(deed.excluded.begin(), deed.excluded.end(), rank) == 0)
      child.members.push_back(parent.members[static_cast<std::size_t>(rank)]);
  }
  deed.born.push_back(child);
  deed.stuck = kind == Kind::ShrinkAbort && parent.state == State::Alive && dice_.chance(60);
  if (kind == Kind::ShrinkAbort) {
    spoilRecordings(parent);
    remove(parent.id);
  }
  put(child);
  return true;
}

bool Generator::makeGrow(const Comm& parent, bool parallel, Deed& deed) {
  if (!has(kGrow) || live_.size() >= limits_.comms || parent.size() == limits_.ranks) return false;
  deed = begin(Kind::Grow, parent);
  deed.wish = makeWish();
  if (!parent.blocking) deed.wish.given = true;  // new ranks have no parent of whom they would be
  if (!deed.wish.given) deed.wish.splitShare = deed.wish.shrinkShare = false;
  std::vector<int> others;
  for (int rank = 0; rank < limits_.ranks; ++rank)
    if (parent.rankOf(rank) < 0) others.push_back(rank);
  shuffle(dice_, others);
  others.resize(dice_.between(1, others.size()));
  Comm child = makeChild(parent, deed.wish, false, parallel);
  // A null configuration means the parent's for its members and defaults for the others: nobody may rely on sharing.
  if (!deed.wish.given && (parent.splitShare || parent.shrinkShare)) return false;
  child.members = parent.members;
  child.members.insert(child.members.end(), others.begin(), others.end());
  deed.who = parent.members[dice_.below(parent.members.size())];
  deed.born.push_back(child);
  put(child);
  return true;
}

/// What ends the work of one ends all of its family: the others can only be aborted.
bool Generator::doomRelatives(const Comm& comm, Deed& deed) {
  for (const Comm& one : relatives(comm)) {
    if (one.state == State::Suspended) return false;
    deed.doomed.push_back(one);
  }
  for (const Comm& one : deed.doomed) remove(one.id);
  return true;
}

bool Generator::makeAbort(const Comm& comm, Deed& deed) {
  deed = begin(Kind::Abort, comm);
  for (const Comm& one : std::vector<Comm>(live_)) {
    if (one.family != comm.family) continue;
    if (one.state == State::Suspended) return false;
    deed.doomed.push_back(one);
  }
  for (const Comm& one : deed.doomed) {
    spoilRecordings(one);
    remove(one.id);
  }
  deed.stuck = comm.state == State::Alive && comm.size() > 1 && dice_.chance(50);
  return true;
}

bool Generator::makeEnd(Kind kind, const Comm& comm, Deed& deed) {
  if (kind == Kind::Abort) return makeAbort(comm, deed);
  deed = begin(kind, comm);
  Comm after = comm;
  after.state = kind == Kind::Finalize ? State::Finalized : State::Revoked;
  if (kind == Kind::Revoke) {
    if (!doomRelatives(comm, deed)) return false;
    deed.stuck = comm.size() > 1 && dice_.chance(50);
    spoilRecordings(comm);
  }
  if (kind == Kind::Destroy)
    remove(comm.id);
  else
    put(after);
  return true;
}

bool Generator::makeRecording(Kind kind, int lane, Deed& deed) {
  std::vector<Recording*> found;
  for (Recording& one : recordings_) {
    const auto now = std::find_if(live_.begin(), live_.end(), [&](const Comm& c) { return c.id == one.comm.id; });
    const bool asleep = now != live_.end() && now->state != State::Alive;
    if ((lane < 0 || one.comm.lane == lane) && (kind == Kind::Drop ? !kept(one) : one.playable && !asleep))
      found.push_back(&one);
  }
  if (found.empty()) return false;
  const Recording one = *found[dice_.below(found.size())];
  deed = begin(kind, one.comm);
  deed.recording = one.id;
  if (kind == Kind::Drop) {
    recordings_.erase(
        std::remove_if(recordings_.begin(), recordings_.end(), [&](const Recording& r) { return r.id == one.id; }),
        recordings_.end());
  }
  return true;
}

/// Of a buffer that a graph uses, or of one of the thread's.
bool Generator::makeRegister(const Comm& comm, Deed& deed) {
  deed = begin(Kind::Register, comm);
  deed.registration = registered_++;
  deed.recording = -1;
  deed.which = dice_.below(1 << 20);
  for (const Recording& one : recordings_)
    if (one.comm.id == comm.id && dice_.chance(50)) deed.recording = one.id;
  registrations_.push_back({deed.registration, comm.id, deed.recording});
  return true;
}

/// In whatever state the communicator is, and while graphs use the buffer.
bool Generator::makeDeregister(int lane, Deed& deed) {
  std::vector<std::pair<Registration, Comm>> found;
  for (const Registration& one : registrations_)
    for (const Comm& comm : live_)
      if (comm.id == one.comm && (lane < 0 || comm.lane == lane)) found.emplace_back(one, comm);
  if (found.empty()) return false;
  const auto [one, comm] = found[dice_.below(found.size())];
  deed = begin(Kind::Deregister, comm);
  deed.registration = one.id;
  std::erase_if(registrations_, [id = one.id](const Registration& other) { return other.id == id; });
  return true;
}

bool Generator::makeWrong(int lane, Deed& deed) {
  std::vector<Comm> found;
  for (const Comm& comm : live_)
    if (lane < 0 || comm.lane == lane) found.push_back(comm);
  if (found.empty()) return false;
  const Comm comm = dice_.pick(found);
  deed = begin(Kind::Wrong, comm);
  deed.who = comm.members[dice_.below(comm.members.size())];
  deed.which = dice_.below(1 << 20);
  for (const Comm& one : relatives(comm))
    if (comm.size() > 1 && one.size() > 1 && one.rankOf(deed.who) >= 0) deed.related = true;
  for (const Comm& other : found) {
    // What a communicator of one rank is asked for is done at once, and in no group.
    const bool grouped =
        comm.state == State::Alive && other.state == State::Alive && comm.size() > 1 && other.size() > 1;
    if (grouped && other.blocking != comm.blocking && other.rankOf(deed.who) >= 0) deed.other = other.id;
  }
  return true;
}

/// Often one with relatives for what ends them, and one with graphs for a registration of their buffers: there are few.
Comm Generator::pickFor(Kind kind, const std::vector<Comm>& all) {
  const bool ends = kind == Kind::Revoke || kind == Kind::ShrinkAbort;
  std::vector<Comm> special;
  for (const Comm& comm : all) {
    const bool used = comm.size() > 1 && !relatives(comm).empty();
    const bool recorded = std::any_of(recordings_.begin(), recordings_.end(),
                                      [&](const Recording& one) { return one.comm.id == comm.id; });
    if ((ends && used) || (kind == Kind::Register && recorded)) special.push_back(comm);
  }
  return !special.empty() && dice_.chance(70) ? dice_.pick(special) : dice_.pick(all);
}

bool Generator::makeOnOne(Kind kind, int lane, bool parallel, Deed& deed) {
  std::vector<Comm> found = alive(lane, kind == Kind::Resume ? State::Suspended : State::Alive);
  if (kind == Kind::Split || kind == Kind::Shrink || kind == Kind::Destroy || kind == Kind::Abort) {
    for (const Comm& comm : alive(lane, State::Revoked)) found.push_back(comm);
  }
  if (kind == Kind::Destroy || kind == Kind::Abort) {
    for (const Comm& comm : alive(lane, State::Finalized)) found.push_back(comm);
  }
  if (found.empty()) return false;
  const Comm comm = pickFor(kind, found);
  switch (kind) {
    case Kind::Split:
      return makeSplit(comm, parallel, deed);
    case Kind::Shrink:
    case Kind::ShrinkAbort:
      return makeShrink(kind, comm, parallel, deed);
    case Kind::Grow:
      return makeGrow(comm, parallel, deed);
    case Kind::Revoke:
      return has(kRevoke) && makeEnd(kind, comm, deed);
    case Kind::Finalize:
    case Kind::Destroy:
    case Kind::Abort:
      return makeEnd(kind, comm, deed);
    case Kind::Suspend:
    case Kind::Resume:
      return makePause(kind, comm, deed);
    case Kind::Register:
      return makeRegister(comm, deed);
    default:
      return makeUse(kind, comm, deed);
  }
}

bool Generator::makePause(Kind kind, Comm comm, Deed& deed) {
  if (!has(kSuspend) || !alone(comm) || (kind == Kind::Suspend && graphsOfOthers(comm))) return false;
  deed = begin(kind, comm);
  comm.state = kind == Kind::Suspend ? State::Suspended : State::Alive;
  put(comm);
  return true;
}

/// An operation, which may be recorded.
bool Generator::makeUse(Kind kind, const Comm& comm, Deed& deed) {
  if (kind == Kind::Record && recordings_.size() >= limits_.recordings) return false;
  deed = begin(kind, comm);
  deed.op = makeOp(comm);
  noteWork(comm);
  if (kind != Kind::Record) return true;
  deed.op.patient = false;
  deed.recording = recorded_++;
  recordings_.push_back({deed.recording, comm, true});
  return true;
}

bool Generator::make(Kind kind, int lane, bool parallel, Deed& deed) {
  if (kind == Kind::Init) return makeInit(lane, parallel, deed);
  if (kind == Kind::Wrong) return makeWrong(lane, deed);
  if (kind == Kind::Deregister) return makeDeregister(lane, deed);
  if (kind == Kind::Replay || kind == Kind::Drop) return makeRecording(kind, lane, deed);
  return makeOnOne(kind, lane, parallel, deed);
}

/// Two or three of a kind, on communicators that are all blocking or none of them.
bool Generator::makeGroup(Step& step) {
  static constexpr std::array kGrouped = {Kind::Work, Kind::Work, Kind::Work,    Kind::Split,
                                          Kind::Init, Kind::Init, Kind::Destroy, Kind::Finalize};
  const int lane = dice_.below(kLanes);
  const Kind kind = dice_.pick(kGrouped);
  std::vector<int> used;
  bool blocking = true;
  for (int tries = 0; tries < 8 && used.size() < 3; ++tries) {
    const Generator before = *this;
    Deed deed;
    if (!make(kind, lane, true, deed)) continue;
    const bool again = std::count(used.begin(), used.end(), deed.comm.id) > 0;
    const bool bornHere = kind != Kind::Init && !used.empty() && deed.comm.id >= step.lanes[lane].front().comm.id &&
                          std::any_of(step.lanes[lane].begin(), step.lanes[lane].end(), [&](const Deed& one) {
                            return std::any_of(one.born.begin(), one.born.end(),
                                               [&](const Comm& born) { return born.id == deed.comm.id; });
                          });
    if ((again && kind != Kind::Work) || bornHere || (!used.empty() && deed.comm.blocking != blocking)) {
      const differential::Dice dice = dice_;
      *this = before;
      dice_ = dice;
      continue;
    }
    blocking = deed.comm.blocking;
    used.push_back(deed.comm.id);
    step.lanes[lane].push_back(deed);
  }
  step.grouped = true;
  return !used.empty();
}

Step Generator::next() {
  Step step;
  step.number = steps_++;
  if (dice_.chance(15) && makeGroup(step)) return step;
  step.grouped = false;
  if (dice_.chance(25)) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::size_t deeds = dice_.between(1, 3);
      for (int tries = 0; tries < 12 && step.lanes[lane].size() < deeds; ++tries) {
        Deed deed;
        if (make(pickKind(), lane, true, deed)) step.lanes[lane].push_back(deed);
      }
    }
    return step;
  }
  for (;;) {
    Deed deed;
    if (!make(live_.empty() ? Kind::Init : pickKind(), -1, false, deed)) continue;
    step.lanes[deed.comm.lane].push_back(deed);
    return step;
  }
}

Step Generator::ending() {
  Step step;
  step.number = steps_++;
  Deed deed;
  const std::vector<Comm> asleep = alive(-1, State::Suspended);
  if (!asleep.empty()) {
    Comm comm = asleep.front();
    deed = begin(Kind::Resume, comm);
    comm.state = State::Alive;
    put(comm);
  } else if (!live_.empty()) {
    makeEnd(Kind::Destroy, dice_.pick(live_), deed);
  } else if (!makeRecording(Kind::Drop, -1, deed)) {
    return step;
  }
  step.lanes[deed.comm.lane].push_back(deed);
  return step;
}

}  // namespace lifecycle
