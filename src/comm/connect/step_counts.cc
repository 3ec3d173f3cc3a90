#include "comm/connect/step_counts.h"

#include "device/collectives/message_steps.h"
#include "device/collectives/pat.h"
#include "device/collectives/ring.h"
#include "device/collectives/tree.h"
#include "device/packet_ll.h"
#include "device/packet_ll128.h"
#include "device/partition.h"
#include "device/recv_sequence.h"

namespace tutti::comm {

namespace {

using device::ConnKind;
using device::Direction;
using device::Protocol;

std::uint32_t payloadOf(const device::SlotBytes& slots, Protocol protocol) {
  const std::uint32_t slot = slots[static_cast<std::size_t>(protocol)];
  if (protocol == Protocol::LL) return device::ll::payloadOf(slot);
  return protocol == Protocol::LL128 ? device::ll128::payloadOf(slot) : slot;
}

/// Verbs of prims_verbs.h that count. 0 elements a step: there are no such connections.
template <class T>
class CountingVerbs {
 public:
  CountingVerbs(std::uint32_t sendPayload, std::uint32_t recvPayload)
      : sendMost_(sendPayload / sizeof(T)), recvMost_(recvPayload / sizeof(T)) {}

  void send(const T*, std::uint64_t n) { sends += stepsOf(n, sendMost_); }
  void sendFilling(const T* in, std::uint64_t n) { send(in, n); }
  void copySend(const T* in, T*, std::uint64_t n) { send(in, n); }
  void recv(T*, std::uint64_t n) { recvs += stepsOf(n, recvMost_); }
  void recvReduceCopy(const T*, T* out, std::uint64_t n) { recv(out, n); }
  void recvReduceSend(const T*, std::uint64_t n) { both(n); }
  void recvCopySend(T*, std::uint64_t n) { both(n); }
  void recvReduceCopySend(const T*, T*, std::uint64_t n) { both(n); }
  void copyLocal(const T*, T*, std::uint64_t) {}

  std::uint64_t sends = 0;
  std::uint64_t recvs = 0;

 private:
  static std::uint64_t stepsOf(std::uint64_t n, std::uint64_t most) {
    return most == 0 ? 0 : device::divideUp(n, most);
  }
  void both(std::uint64_t n) {
    const std::uint64_t steps = stepsOf(n, sendMost_ != 0 ? sendMost_ : recvMost_);
    sends += steps;
    recvs += steps;
  }

  std::uint64_t sendMost_;
  std::uint64_t recvMost_;
};

/// Counts for one work of one channel.
class Counting {
 public:
  Counting(const CountedChannel& channel, const CountedKernel& kernel, const device::CollWork& work,
           std::vector<StepCount>& counts)
      : channel_(channel), kernel_(kernel), work_(work), counts_(counts) {}

  template <class T>
  void all() {
    part_ = device::channelPart(work_.count, sizeof(T), work_.channelHi - work_.channelLo + 1u,
                                channel_.channel - work_.channelLo);
    switch (kernel_.algorithm) {
      case device::Algorithm::Ring:
        return ring<T>();
      case device::Algorithm::Tree:
        return tree<T>();
      case device::Algorithm::Pat:
        return pat(sizeof(T));
      default:
        return;
    }
  }

 private:
  std::uint32_t payload(int peer, ConnKind kind, Direction direction) const {
    return payloadOf(channel_.slots(peer, kind, direction), kernel_.protocol);
  }
  void add(int peer, ConnKind kind, Direction direction, std::uint64_t steps, std::uint32_t stepBytes) {
    if (steps == 0) return;
    counts_.push_back({peer, direction, kind, kernel_.protocol, steps, stepBytes});
  }
  /// Of a step of so many bytes at most.
  std::uint32_t bytesOf(std::uint32_t payload) const {
    return static_cast<std::uint32_t>(device::smaller(work_.chunkBytes, payload));
  }

  template <class T>
  void ring() {
    const device::Ring ring{channel_.ring.data(), channel_.nRanks};
    const device::RingWork work{part_, work_.count, work_.chunkBytes / sizeof(T), work_.root};
    const bool host = channel_.world == device::World::Host && kernel_.func == device::Func::AllReduce;
    if (host && kernel_.protocol == Protocol::Simple && work_.pairMethod == device::PairMethod::InPlace) {
      return pairInPlace<T>(ring, work);
    }
    const int next = channel_.place->next;
    const int prev = channel_.place->prev;
    const std::uint32_t out = payload(next, ConnKind::Graph, Direction::Send);
    const std::uint32_t in = payload(prev, ConnKind::Graph, Direction::Recv);
    CountingVerbs<T> verbs(out, in);
    // As kernels.h has it: kernels of sums alone exchange.
    if (host && kernel_.op == device::DevOp::Sum && work_.pairMethod == device::PairMethod::Exchange) {
      device::pairAllReduce(verbs, work, input<T>(), output<T>());
    } else {
      ringFunc(verbs, ring, work, input<T>(), output<T>());
    }
    add(next, ConnKind::Graph, Direction::Send, verbs.sends, bytesOf(out));
    add(prev, ConnKind::Graph, Direction::Recv, verbs.recvs, bytesOf(in));
  }

  template <class T>
  void ringFunc(CountingVerbs<T>& verbs, const device::Ring& ring, const device::RingWork& work, const T* in,
                T* out) const {
    switch (kernel_.func) {
      case device::Func::AllReduce:
        return device::ringAllReduce(verbs, ring, work, in, out);
      case device::Func::ReduceScatter:
        return device::ringReduceScatter(verbs, ring, work, in, out);
      case device::Func::AllGather:
        return device::ringAllGather(verbs, ring, work, in, out);
      case device::Func::Broadcast:
        return device::ringBroadcast(verbs, ring, work, in, out);
      case device::Func::Reduce:
        return device::ringReduce(verbs, ring, work, in, out);
      case device::Func::SendRecv:
        return;
    }
  }

  /// device/collectives/pair_in_place.h.
  template <class T>
  void pairInPlace(const device::Ring& ring, const device::RingWork& work) {
    const int peer = ring.at(1);
    const std::uint32_t slot = payload(peer, ConnKind::Mesh, Direction::Recv);
    const std::uint64_t step = slot / sizeof(T);
    std::uint64_t steps = 0;
    std::uint64_t chunk = 0;
    for (std::uint64_t begin = work.part.begin; begin < work.part.end(); begin += 2 * chunk) {
      const device::Part turn{begin, work.part.end() - begin};
      chunk = device::ringChunk(turn.count, work.chunk, 2, sizeof(T));
      steps += device::divideUp(device::pieceOf(turn, chunk, ring.at(0)).count, step);
      steps += device::divideUp(device::pieceOf(turn, chunk, ring.at(1)).count, step);
    }
    add(peer, ConnKind::Mesh, Direction::Send, steps, slot);
    add(peer, ConnKind::Mesh, Direction::Recv, steps, slot);
  }

  template <class T>
  void tree() {
    const device::TreeWork work{part_, work_.chunkBytes / sizeof(T)};
    const auto& place = channel_.place->tree;
    const int child = place.down[0];
    const auto of = [this](int peer, Direction direction) {
      return peer < 0 ? 0 : payload(peer, ConnKind::Graph, direction);
    };
    const std::uint32_t fromChild = of(child, Direction::Recv);
    const std::uint32_t toChild = of(child, Direction::Send);
    if (place.up < 0) {
      CountingVerbs<T> root(toChild, fromChild);
      device::treeRoot(root, work, input<T>(), output<T>());
      return children(root.recvs, root.sends, bytesOf(toChild));
    }
    const std::uint32_t toParent = of(place.up, Direction::Send);
    const std::uint32_t fromParent = of(place.up, Direction::Recv);
    CountingVerbs<T> up(toParent, fromChild);
    device::treeUp(up, work, input<T>());
    CountingVerbs<std::int8_t> down(toChild, fromParent);
    const device::TreeWork bytes{{part_.begin * sizeof(T), part_.count * sizeof(T)}, work.chunk * sizeof(T)};
    device::treeDown(down, bytes, output<std::int8_t>());
    add(place.up, ConnKind::Graph, Direction::Send, up.sends, bytesOf(toParent));
    children(up.recvs, 0, bytesOf(toParent));
    add(place.up, ConnKind::Graph, Direction::Recv, down.recvs, bytesOf(fromParent));
    children(0, down.sends, bytesOf(fromParent));
  }

  void children(std::uint64_t recvs, std::uint64_t sends, std::uint32_t bytes) {
    for (const int child : channel_.place->tree.down) {
      if (child < 0) continue;
      add(child, ConnKind::Graph, Direction::Recv, recvs, bytes);
      add(child, ConnKind::Graph, Direction::Send, sends, bytes);
    }
  }

  void pat(std::size_t elementBytes) {
    const bool gathers = kernel_.func == device::Func::AllGather;
    const auto stepAt = [&](int k) {
      return gathers ? device::patGatherStep(channel_.rank, channel_.nRanks, k)
                     : device::patReduceStep(channel_.rank, channel_.nRanks, k);
    };
    const std::uint32_t slot = payload(stepAt(0).sendTo, ConnKind::Graph, Direction::Send);
    const std::uint64_t turns = device::patTurns(part_.count, channel_.nRanks, slot, elementBytes).n;
    for (int k = 0; k < device::patSteps(channel_.nRanks); ++k) {
      add(stepAt(k).sendTo, ConnKind::Graph, Direction::Send, turns, slot);
      add(stepAt(k).recvFrom, ConnKind::Graph, Direction::Recv, turns, slot);
    }
  }

  /// Addresses that nobody follows.
  template <class T>
  const T* input() const {
    return static_cast<const T*>(work_.send);
  }
  template <class T>
  T* output() const {
    return static_cast<T*>(work_.recv);
  }

  const CountedChannel& channel_;
  const CountedKernel& kernel_;
  const device::CollWork& work_;
  std::vector<StepCount>& counts_;
  device::Part part_{};
};

/// The part of a channel in a message.
void countMessage(const CountedChannel& channel, const device::P2pWork& work, Direction direction,
                  std::vector<StepCount>& counts) {
  const bool sends = direction == Direction::Send;
  const int peer = sends ? work.sendPeer : work.recvPeer;
  if (peer < 0 || peer == channel.rank) return;
  const Protocol protocol = sends ? work.sendProtocol : work.recvProtocol;
  const std::uint64_t bytes = sends ? work.sendBytes : work.recvBytes;
  const device::Part part = device::messagePart(work, bytes, channel.channel);
  const device::SlotBytes slots = channel.slots(peer, ConnKind::Mesh, direction);
  std::uint64_t most = payloadOf(slots, protocol);
  if (protocol == Protocol::Simple && channel.world == device::World::Host) {
    device::ConnFifos conn{};
    conn.slotBytes[static_cast<int>(Protocol::Simple)] = slots[static_cast<std::size_t>(Protocol::Simple)];
    most = device::stepBytes(conn, part.count);
  }
  std::uint64_t steps = most == 0 ? 0 : device::divideUp(part.count, most);
  if (bytes == 0 && channel.channel == work.channelLo) steps = 1;
  if (steps > 0) counts.push_back({peer, direction, ConnKind::Mesh, protocol, steps, static_cast<std::uint32_t>(most)});
}

}  // namespace

void countSteps(const CountedChannel& channel, const CountedKernel& kernel, const device::CollWork& work,
                std::vector<StepCount>& counts) {
  counts.clear();
  if (channel.nRanks == 1) return;
  Counting counting(channel, kernel, work, counts);
  switch (kernel.elementBytes) {
    case 1:
      return counting.all<std::uint8_t>();
    case 2:
      return counting.all<std::uint16_t>();
    case 4:
      return counting.all<std::uint32_t>();
    default:
      return counting.all<std::uint64_t>();
  }
}

void countSteps(const CountedChannel& channel, const device::P2pWork& work, std::vector<StepCount>& counts) {
  counts.clear();
  countMessage(channel, work, Direction::Send, counts);
  countMessage(channel, work, Direction::Recv, counts);
}

}  // namespace tutti::comm
