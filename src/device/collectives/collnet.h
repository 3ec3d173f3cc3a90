// Collectives over a network that reduces and gathers by itself: what each crew of a block does for a whole work. Who
// is on which crew, and why none waits in a circle: docs/protocols.md, "CollNet".
//
//   AllReduce, node of 3 ranks, rank 0 a head
//     rank 1, 2 scatter  in[0] -> rank 0          rank 0 reduce     in[0] + from 1, 2 -> network
//     rank 1, 2 gather   from rank 0 -> out[0]    rank 0 broadcast  network -> out[0], rank 1, 2
//
// A chain does the same by two crews: values are combined on the way up, results are copied on the way down. Empty
// pieces take a step of the network, and no slot between ranks: both ends know that they are empty.
//
// Where the user's memory is registered and needs no work of a kernel, the network reads input there, and writes
// results there: the crew does no more than wait and post.
#pragma once

#include "device/prims/collnet_crew.h"
#include "device/prims/collnet_lane.h"
#include "device/prims/fan_in.h"
#include "device/prims/prims_simple.h"

namespace tutti::device {

/// A head's business with the network, and the ranks of its node that bring values or get results: entries 0..n-1, of
/// which `self` is this rank.
struct CollNetHead {
  const CollNetConn& conn;
  int rail;
  unsigned lane;  ///< of the cut
  ConnKind results;
  const std::int32_t* ranks;  ///< by entry; null: entry 1 is `neighbour`
  std::int32_t neighbour;
  int n;
  int self;

  TUTTI_DEVICE int rankOf(int entry) const { return ranks != nullptr ? ranks[entry] : neighbour; }
  TUTTI_DEVICE Entries all() const { return {0, n}; }
};

// --- every rank, for other heads

/// Own input -> the other heads that reduce it.
template <bool kBlocks, class T, class Op>
TUTTI_DEVICE void collNetScatter(const CollNetTask<T, Op>& task, const CollNetPlace& place) {
  const Crew crew = task.crew(place);
  const Op op = task.op();
  const CollNetView& net = task.net;
  CollNetFifos fifos(crew, task.peers(CollNetRole::Scatter), Protocol::Simple, net.head);
  fifos.forOwned({0, net.nHeads},
                 [&](int h) { fifos.openSend(h, task.channel().sendTo(ConnKind::Graph, net.heads[h])); });
  bool fine = true;
  for (std::uint64_t turn = 0; turn < task.cut.turns() && fine; ++turn) {
    const auto pieceOf = [&](int h) { return task.cut.piece(turn, h, task.block.channel); };
    const auto bytes = [&](int h) { return pieceOf(h).count * sizeof(T); };
    const int busy = static_cast<int>(task.cut.busyHeads(turn, task.block.channel, net.nHeads));
    fine = fifos.template each<Direction::Send>({0, busy}, task.firstHead(busy), bytes, [&](int h) {
      std::uint64_t at = 0;
      if (!changesInput(op) && task.template inOneRow<kBlocks>(pieceOf(h), h, at) &&
          fifos.offer(h, task.in + at, bytes(h))) {
        return;
      }
      T* const slot = reinterpret_cast<T*>(fifos.shared().to[h]);
      task.template forRows<kBlocks>(pieceOf(h), h, [&](std::uint64_t row, std::uint64_t offset, std::uint64_t count) {
        moveSlice<Shape<true, false, false, false>>(crew.group, op,
                                                    Slice<T>{task.in + row, nullptr, slot + offset, nullptr, count,
                                                             simt::streamingToPeerPays(bytes(h)), false});
      });
    });
  }
  fifos.finish({0, net.nHeads}, CollNetFifos::kNobody);
}

/// What other heads got from the network -> output.
template <bool kBlocks, class T, class Op>
TUTTI_DEVICE void collNetGather(const CollNetTask<T, Op>& task, const CollNetPlace& place) {
  const Crew crew = task.crew(place);
  const CollNetView& net = task.net;
  CollNetFifos fifos(crew, task.peers(CollNetRole::Gather), Protocol::Simple, net.head);
  fifos.forOwned({0, net.nHeads},
                 [&](int h) { fifos.openRecv(h, task.channel().recvFrom(ConnKind::Mesh, net.heads[h])); });
  bool fine = true;
  for (std::uint64_t turn = 0; turn < task.cut.turns() && fine; ++turn) {
    const auto pieceOf = [&](int h) { return task.cut.piece(turn, h, task.block.channel); };
    const auto bytes = [&](int h) { return pieceOf(h).count * sizeof(T); };
    const int busy = static_cast<int>(task.cut.busyHeads(turn, task.block.channel, net.nHeads));
    fine = fifos.template each<Direction::Recv>({0, busy}, task.firstHead(busy), bytes, [&](int h) {
      const T* const slot = reinterpret_cast<const T*>(fifos.shared().from[h]);
      // In place it replaces input that others have read (docs/measurements/in_place.md).
      const bool streams = task.streaming || (task.in == task.out && simt::streamingToPeerPays(bytes(h)));
      task.template forRows<kBlocks>(pieceOf(h), h, [&](std::uint64_t row, std::uint64_t offset, std::uint64_t count) {
        simt::copyBytes(crew.group, task.out + row, slot + offset, count * sizeof(T), streams);
      });
    });
  }
  fifos.finish(CollNetFifos::kNobody, {0, net.nHeads});
}

// --- heads

/// What a head's two crews have in common: a lane in one direction, and connections to ranks of the node.
template <Direction kDirection, class T, class Op>
class CollNetHeadCrew {
 public:
  TUTTI_DEVICE CollNetHeadCrew(const CollNetTask<T, Op>& task, const CollNetPlace& place, const CollNetHead& head)
      : task_(task),
        head_(head),
        crew_(task.crew(place)),
        fifos_(crew_, task.peers(place.role), Protocol::Simple, head.self),
        lane_(crew_.thread, head.conn, task.work.chunkBytes) {
    if constexpr (simt::kPulls) {
      if (task.block.registered) sendsFromInput_ = mayReadInput(), recvsIntoOutput_ = mayWriteOutput();
    }
    const ChannelView& channel = task.channel();
    fifos_.forOwned(partners(), [&](int i) {
      if constexpr (kSends) fifos_.openRecv(i, channel.recvFrom(ConnKind::Graph, head.rankOf(i)));
      if constexpr (!kSends) fifos_.openSend(i, channel.sendTo(head.results, head.rankOf(i)));
    });
  }

  /// Calls move(piece, slot) for each turn, between the waits for and the hand-over of all that a turn needs.
  template <class Move>
  TUTTI_DEVICE void run(Move move) {
    bool fine = true;
    for (std::uint64_t turn = 0; turn < task_.cut.turns() && fine; ++turn) {
      const Part piece = task_.cut.piece(turn, head_.rail, head_.lane);
      const Entries partners = piece.count > 0 ? this->partners() : CollNetFifos::kNobody;
      const std::uint64_t bytes = piece.count * sizeof(T);
      fine = acquire(partners, bytes);
      if (fine && piece.count > 0 && !bypassed()) move(piece, reinterpret_cast<T*>(lane_.slot()));
      release(partners, bytes, fine, turn);
    }
    if (posts()) lane_.save(crew_.thread);
    fifos_.finish(kSends ? CollNetFifos::kNobody : partners(), kSends ? partners() : CollNetFifos::kNobody);
  }

  TUTTI_DEVICE simt::Group group() const { return crew_.group; }
  TUTTI_DEVICE CollNetPeers& shared() const { return fifos_.shared(); }

  /// Every partner reads the same elements; false: none does.
  TUTTI_DEVICE bool offerAll(const T* data, std::uint64_t n) {
    bool offered = simt::kPulls && head_.n > 1;
    for (int i = 0; i < head_.n && offered; ++i) {
      if (i != head_.self) offered = fifos_.offer(i, data, n * sizeof(T));
    }
    return offered;
  }

 private:
  static constexpr bool kSends = kDirection == Direction::Send;

  /// Whether what is sent lies in the input as it is, and in a row.
  TUTTI_DEVICE bool mayReadInput() const {
    if (task_.func == Func::AllGather) return true;
    if (head_.n > 1 || changesInput(task_.op())) return false;
    return task_.func == Func::AllReduce || task_.blocksInARow(head_.rail);
  }
  /// Whether the output, and nobody else, gets what is received as it is, and in a row.
  TUTTI_DEVICE bool mayWriteOutput() const {
    if (changesResult(task_.op())) return false;
    if (task_.func == Func::ReduceScatter) return true;
    return head_.n == 1 && (task_.func == Func::AllReduce || task_.blocksInARow(head_.rail));
  }
  TUTTI_DEVICE bool bypassed() const { return kSends ? sendsFromInput_ : recvsIntoOutput_; }

  /// Only reductions take values from the node, and all but they give results to it.
  TUTTI_DEVICE Entries partners() const {
    const bool none = kSends ? task_.func == Func::AllGather : task_.func == Func::ReduceScatter;
    return none ? CollNetFifos::kNobody : head_.all();
  }
  /// The last thread waits for the network: the first ones wait for ranks.
  TUTTI_DEVICE bool posts() const { return crew_.group.rank == crew_.group.size - 1; }

  TUTTI_DEVICE bool acquire(Entries partners, std::uint64_t bytes) {
    if (posts() && !lane_.wait(crew_.thread, crew_.abortWord)) fifos_.setAborted();
    return kSends ? fifos_.acquire(CollNetFifos::kNobody, partners, bytes)
                  : fifos_.acquire(partners, CollNetFifos::kNobody, bytes);
  }

  TUTTI_DEVICE void release(Entries partners, std::uint64_t bytes, bool fine, std::uint64_t turn) {
    if (kSends && fifos_.alone()) simt::finishStreaming();
    fifos_.release(kSends ? CollNetFifos::kNobody : partners, kSends ? partners : CollNetFifos::kNobody, fine, bytes);
    if (fine && fifos_.alive() && posts()) {
      if constexpr (kSends) tell(turn);
      lane_.post(crew_.thread);
    }
    lane_.advance();
  }

  TUTTI_DEVICE void tell(std::uint64_t turn) const {
    if (head_.conn.lane != 0) return;
    const Part window = task_.cut.window(turn, head_.rail, head_.lane, head_.conn.lanes);
    const std::uint64_t perNode = task_.func == Func::AllReduce ? 0 : task_.work.count;
    CollNetStep step{networkCall(task_.func, task_.work).word(),
                     window.begin * sizeof(T),
                     window.count * sizeof(T),
                     perNode * sizeof(T),
                     0,
                     0};
    if (sendsFromInput_) step.sendFrom = placeIn(task_.in, window, task_.func == Func::AllGather);
    if (recvsIntoOutput_) step.recvTo = placeIn(task_.out, window, task_.func == Func::ReduceScatter);
    lane_.tell(crew_.thread, step);
  }

  /// Where a window begins, or what of it is this node's own, in memory that has a vector, the rail's blocks or, with
  /// `ownBlock`, the node's alone.
  TUTTI_DEVICE std::uint64_t placeIn(const T* data, Part window, bool ownBlock) const {
    if (!ownBlock) return reinterpret_cast<std::uint64_t>(data + window.begin);
    const Part own = partInBlock(window, task_.work.count, task_.net.node);
    return own.count == 0 ? 0 : reinterpret_cast<std::uint64_t>(data + own.begin - task_.net.node * task_.work.count);
  }

  const CollNetTask<T, Op>& task_;
  const CollNetHead& head_;
  Crew crew_;
  CollNetFifos fifos_;
  CollNetLane<kDirection> lane_;
  bool sendsFromInput_ = false;  ///< past the slots; likewise
  bool recvsIntoOutput_ = false;
};

/// Own input and what came for this head, in the order of entries -> network.
template <bool kBlocks, class T, class Op>
TUTTI_DEVICE void collNetReduce(const CollNetTask<T, Op>& task, const CollNetPlace& place, const CollNetHead& head) {
  CollNetHeadCrew<Direction::Send, T, Op> crew(task, place, head);
  const Op op = task.op();
  crew.run([&](Part piece, T* slot) {
    task.template forRows<kBlocks>(piece, head.rail, [&](std::uint64_t row, std::uint64_t offset, std::uint64_t count) {
      fanIn<false>(crew.group(), op,
                   FanIn<T>{.own = task.in + row,
                            .from = crew.shared().from,
                            .fromOffset = offset,
                            .nSources = head.n,
                            .ownAt = head.self,
                            .out = slot + offset,
                            .count = count,
                            .streams = simt::streamingToPeerPays(piece.count * sizeof(T))});
    });
  });
}

/// Own part of the window -> network.
template <class T, class Op>
TUTTI_DEVICE void collNetContribute(const CollNetTask<T, Op>& task, const CollNetPlace& place,
                                    const CollNetHead& head) {
  CollNetHeadCrew<Direction::Send, T, Op> crew(task, place, head);
  const std::uint64_t before = static_cast<std::uint64_t>(task.net.node) * task.work.count;
  crew.run([&](Part piece, T* slot) {
    const Part own = partInBlock(piece, task.work.count, task.net.node);
    if (own.count == 0) return;
    simt::copyBytes(crew.group(), slot + (own.begin - piece.begin), task.in + (own.begin - before),
                    own.count * sizeof(T), simt::streamingToPeerPays(own.count * sizeof(T)));
  });
}

/// Network: complete results -> output, the other ranks.
template <class T, class Op>
TUTTI_DEVICE void collNetBroadcast(const CollNetTask<T, Op>& task, const CollNetPlace& place, const CollNetHead& head) {
  CollNetHeadCrew<Direction::Recv, T, Op> crew(task, place, head);
  const Op op = task.op();
  crew.run([&](Part piece, T* slot) {
    const bool peersPay = simt::streamingToPeerPays(piece.count * sizeof(T));
    FanIn<T> work{.own = slot, .out = task.out + piece.begin, .count = piece.count};
    const bool offered = crew.offerAll(work.out, piece.count);
    if (!offered) work.to = crew.shared().to, work.nTo = head.n, work.skipTo = head.self;
    work.streams = task.streaming || (offered && peersPay);  // like a slot: what other cores read next
    work.streamsTo = peersPay;
    withAfter(op, [&](const auto& after) { fanIn<true>(crew.group(), after, work); });
  });
}

/// Network: a piece of the rail's blocks -> where they belong in the output, and the other heads.
template <class T, class Op>
TUTTI_DEVICE void collNetSpread(const CollNetTask<T, Op>& task, const CollNetPlace& place, const CollNetHead& head) {
  CollNetHeadCrew<Direction::Recv, T, Op> crew(task, place, head);
  const T* const own = task.out + task.blockAt(head.rail, task.net.node);
  crew.run([&](Part piece, T* slot) {
    const bool peersPay = simt::streamingToPeerPays(piece.count * sizeof(T));
    std::uint64_t at = 0;
    const bool offered =
        task.template inOneRow<true>(piece, head.rail, at) && crew.offerAll(task.out + at, piece.count);
    task.template forRows<true>(piece, head.rail, [&](std::uint64_t row, std::uint64_t offset, std::uint64_t count) {
      T* const to = task.out + row;
      if (to >= own && to < own + task.work.count && task.in == own) return;  // it came from there
      simt::copyBytes(crew.group(), to, slot + offset, count * sizeof(T), task.streaming || (offered && peersPay));
    });
    if (offered || head.n == 1) return;
    fanIn<false>(crew.group(), CopyOp<T>(),
                 FanIn<T>{.own = slot,
                          .to = crew.shared().to,
                          .nTo = head.n,
                          .skipTo = head.self,
                          .count = piece.count,
                          .streamsTo = peersPay});
  });
}

/// Network: own part of the window, complete -> output.
template <class T, class Op>
TUTTI_DEVICE void collNetKeep(const CollNetTask<T, Op>& task, const CollNetPlace& place, const CollNetHead& head) {
  CollNetHeadCrew<Direction::Recv, T, Op> crew(task, place, head);
  const Op op = task.op();
  const std::uint64_t before = static_cast<std::uint64_t>(task.net.node) * task.work.count;
  crew.run([&](Part piece, T* slot) {
    const Part own = partInBlock(piece, task.work.count, task.net.node);
    if (own.count == 0) return;
    moveSlice<Shape<false, true, false, true>>(
        crew.group(), op,
        Slice<T>{nullptr, slot + (own.begin - piece.begin), task.out + (own.begin - before), nullptr, own.count,
                 task.streaming, false});
  });
}

// --- ranks of a chain that are no heads

/// Own input, and what comes from below -> the rank above.
template <class T, class Op>
TUTTI_DEVICE void collNetChainUp(const CollNetTask<T, Op>& task, const CollNetPlace& place,
                                 const CollNetChainPlace& chain) {
  const ChannelView& channel = task.channel();
  PrimsSimple<T, Op> prims(task.crew(place), chain.down < 0 ? nullptr : &channel.recvFrom(ConnKind::Graph, chain.down),
                           &channel.sendTo(ConnKind::Graph, chain.up), task.op(), false);
  for (std::uint64_t turn = 0; turn < task.cut.turns(); ++turn) {
    const Part piece = task.cut.piece(turn, 0, chain.position);
    if (chain.down < 0) prims.send(task.in + piece.begin, piece.count);
    if (chain.down >= 0) prims.recvReduceSend(task.in + piece.begin, piece.count);
  }
  prims.finish();
}

/// Results from above -> output, the rank below. A matter of bytes.
template <class T, class Op>
TUTTI_DEVICE void collNetChainDown(const CollNetTask<T, Op>& task, const CollNetPlace& place,
                                   const CollNetChainPlace& chain) {
  const ChannelView& channel = task.channel();
  PrimsSimple<std::int8_t, CopyOp<std::int8_t>> prims(
      task.crew(place), &channel.recvFrom(ConnKind::Graph, chain.up),
      chain.down < 0 ? nullptr : &channel.sendTo(ConnKind::Graph, chain.down), {}, task.streaming);
  for (std::uint64_t turn = 0; turn < task.cut.turns(); ++turn) {
    const Part piece = task.cut.piece(turn, 0, chain.position);
    auto* const out = reinterpret_cast<std::int8_t*>(task.out + piece.begin);
    if (chain.down < 0) prims.recv(out, piece.count * sizeof(T));
    if (chain.down >= 0) prims.recvCopySend(out, piece.count * sizeof(T));
  }
  prims.finish();
}

}  // namespace tutti::device
