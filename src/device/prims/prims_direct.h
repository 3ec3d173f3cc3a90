// The verbs of direct algorithms over the Simple protocol. Entry p of the connections is rank p.
//
//   push      a part of the input for each peer -> the peer's slot
//   pushAll   the same elements to every peer, perhaps to the own output as well
//   reduce    all peers' slots and own elements, in the order of ranks -> own output, perhaps every peer's slot
//   gather    every peer's slot -> its place in the output
//
// Each takes one slot of every connection that it uses, also for no elements: the number of slots never depends on who
// owns how much. One verb moves at most slotElements() per peer.
#pragma once

#include "device/prims/fan_in.h"
#include "device/prims/peer_fifos.h"

namespace tutti::device {

/// The ranks of a communicator as direct algorithms see them.
struct Peers {
  int self;
  int n;
  /// Peers in the order in which they are served: everybody starts with another one. distance 1..n-1.
  TUTTI_DEVICE int at(int distance) const { return self + distance < n ? self + distance : self + distance - n; }
  TUTTI_DEVICE Entries all() const { return {0, n}; }
};

/// What primitives of all protocols know.
template <class Op>
struct DirectSetup {
  Crew crew;
  PeerShared* shared;
  const CommView* comm;
  const ChannelView* channel;
  Op op;
  bool streaming;  ///< outputs are large (see Slice)
};

/// Opens the connections to all peers.
template <class Op>
TUTTI_DEVICE PeerFifos openPeers(const DirectSetup<Op>& setup, Protocol protocol) {
  const int self = setup.comm->rank;
  PeerFifos fifos(setup.crew, *setup.shared, protocol, self);
  fifos.forOwned({0, setup.comm->nRanks}, [&](int p) {
    fifos.open(p, setup.channel->sendTo(ConnKind::Mesh, p), setup.channel->recvFrom(ConnKind::Mesh, p));
  });
  return fifos;
}

/// Bytes of a slot; the Mesh connections of a communicator all have the same.
TUTTI_DEVICE std::uint32_t meshSlotBytes(const CommView& comm, const ChannelView& channel, Protocol protocol) {
  return channel.sendTo(ConnKind::Mesh, comm.rank == 0 ? 1 : 0).slotBytes[static_cast<int>(protocol)];
}

template <class T, class Op>
class DirectSimple {
 public:
  TUTTI_DEVICE explicit DirectSimple(const DirectSetup<Op>& setup)
      : peers_{setup.comm->rank, setup.comm->nRanks},
        fifos_(openPeers(setup, Protocol::Simple)),
        op_(setup.op),
        slotElements_(meshSlotBytes(*setup.comm, *setup.channel, Protocol::Simple) / sizeof(T)),
        streaming_(setup.streaming) {}

  TUTTI_DEVICE const Peers& peers() const { return peers_; }
  TUTTI_DEVICE std::uint64_t slotElements() const { return slotElements_; }

  /// `partOf(p)`: elements of `in` that rank p gets.
  template <class PartOf>
  TUTTI_DEVICE void push(const T* in, PartOf partOf) {
    eachPeer<Direction::Send>([&](int p) {
      const Part part = partOf(p);
      if (!changesInput(op_) && fifos_.offer(p, in + part.begin, part.count * sizeof(T))) return;
      const bool streams = simt::streamingToPeerPays(part.count * sizeof(T));
      const Slice<T> slice{in + part.begin, nullptr, reinterpret_cast<T*>(shared().to[p]), nullptr, part.count,
                           streams,         false};
      if (part.count > 0) moveSlice<Shape<true, false, false, false>>(group(), op_, slice);
    });
  }

  /// `out`: null, or where the elements go as well. `kept`: `in` does not change before the work ends.
  TUTTI_DEVICE void pushAll(const T* in, T* out, std::uint64_t n, bool kept) {
    const bool fine = fifos_.acquire(peers_.all(), kNobody);
    const bool offered = fine && kept && !changesInput(op_) && offerAll(in, n);
    if (fine && !offered) fanIn<false>(group(), op_, delivery(FanIn<T>{.own = in, .out = out}, n));
    fifos_.release(peers_.all(), kNobody, fine);
    if (offered && out != nullptr) simt::copyBytes(group(), out, in, n * sizeof(T), streaming_);
  }

  /// kDeliver: every peer gets the result, too.
  template <bool kDeliver>
  TUTTI_DEVICE void reduce(const T* own, T* out, std::uint64_t n) {
    const Entries receivers = kDeliver ? peers_.all() : kNobody;
    const bool fine = fifos_.acquire(receivers, peers_.all());
    if (fine) {
      FanIn<T> work{.own = own, .from = shared().from, .nSources = peers_.n, .ownAt = peers_.self, .out = out};
      const bool offered = kDeliver && offerAll(out, n);
      if (kDeliver && !offered) work = delivery(work, n);
      work.count = n;
      // Like a slot: what other cores read next.
      work.streams = streaming_ || (offered && simt::streamingToPeerPays(n * sizeof(T)));
      fanIn<true>(group(), op_, work);
    }
    fifos_.release(receivers, peers_.all(), fine);
  }

  /// `partOf(p)`: elements of `out` that come from rank p. `contested`: they replace input that p has read.
  template <class PartOf>
  TUTTI_DEVICE void gather(T* out, PartOf partOf, bool contested = false) {
    eachPeer<Direction::Recv>([&](int p) {
      const Part part = partOf(p);
      const bool streams = streaming_ || (contested && simt::streamingToPeerPays(part.count * sizeof(T)));
      simt::copyBytes(group(), out + part.begin, shared().from[p], part.count * sizeof(T), streams);
    });
  }

  TUTTI_DEVICE void finish() { fifos_.finish(peers_.all()); }

 private:
  static constexpr Entries kNobody = PeerFifos::kNobody;

  TUTTI_DEVICE simt::Group group() const { return fifos_.crew().group; }
  TUTTI_DEVICE PeerShared& shared() const { return fifos_.shared(); }

  /// Every peer reads the same elements; false: none does.
  TUTTI_DEVICE bool offerAll(const T* data, std::uint64_t n) {
    bool offered = simt::kPulls;
    for (int p = 0; p < peers_.n && offered; ++p) {
      if (p != peers_.self) offered = fifos_.offer(p, data, n * sizeof(T));
    }
    return offered;
  }

  TUTTI_DEVICE FanIn<T> delivery(FanIn<T> work, std::uint64_t n) const {
    work.to = shared().to;
    work.nTo = peers_.n;
    work.skipTo = peers_.self;
    work.count = n;
    work.streams = streaming_;
    work.streamsTo = simt::streamingToPeerPays(n * sizeof(T));
    return work;
  }

  /// One slot of every peer's connection, to be filled or emptied by move(p).
  template <Direction kDirection, class Move>
  TUTTI_DEVICE void eachPeer(Move move) {
    fifos_.template each<kDirection>(peers_.all(), peers_.at(1), std::uint64_t{0}, move);
  }

  Peers peers_;
  PeerFifos fifos_;
  Op op_;
  std::uint64_t slotElements_;
  bool streaming_;
};

}  // namespace tutti::device
