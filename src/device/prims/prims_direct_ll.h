// The verbs of direct algorithms (prims_direct.h) over the LL protocol: data and flag arrive together, so nobody waits
// for a counter before it looks at data, and a thread can store what it reduced before its neighbours have theirs.
// There are two barriers per verb, none per line.
//
// Line i of a slot carries elements [i * 8/sizeof(T), …) of what a verb moves. Thread i of the group (modulo its size)
// writes line i at every peer and reads line i of every peer; where peers have parts of their own, and all lines of all
// of them are no more than there are threads, each thread has one line of one peer.
#pragma once

#include "device/packet_ll.h"
#include "device/prims/prims_direct.h"

namespace tutti::device {

template <class T, class Op>
class DirectLL {
 public:
  TUTTI_DEVICE explicit DirectLL(const DirectSetup<Op>& setup)
      : peers_{setup.comm->rank, setup.comm->nRanks},
        fifos_(openPeers(setup, Protocol::LL)),
        op_(setup.op),
        slotLines_(ll::linesOf(meshSlotBytes(*setup.comm, *setup.channel, Protocol::LL))) {}

  TUTTI_DEVICE const Peers& peers() const { return peers_; }
  TUTTI_DEVICE std::uint64_t slotElements() const { return std::uint64_t{slotLines_} * kPerLine; }

  template <class PartOf>
  TUTTI_DEVICE void push(const T* in, PartOf partOf) {
    const bool fine = acquire(true, false);
    const auto lines = [&](int p, const Part& part) { return linesFor(p, part.count); };
    if (fine) {
      forPeerLines(partOf, lines, [&](int p, const Part& part, std::uint32_t i) {
        storeLine(p, i, i < linesOf(part.count) ? bitsOf(op_.before(loadLine(in + part.begin, i, part.count))) : 0);
        return true;
      });
    }
    release(true, false, fine);
  }

  TUTTI_DEVICE void pushAll(const T* in, T* out, std::uint64_t n, bool) {
    const bool fine = acquire(true, false);
    if (fine) {
      forLines(linesOf(n), [&](std::uint32_t i) {
        const Line value = op_.before(loadLine(in, i, n));
        for (int distance = 1; distance < peers_.n; ++distance) storeLine(peers_.at(distance), i, bitsOf(value));
        if (out != nullptr) keepLine(out, i, n, value);
        return true;
      });
      cleanSlots(linesOf(n));
    }
    release(true, false, fine);
  }

  template <bool kDeliver>
  TUTTI_DEVICE void reduce(const T* own, T* out, std::uint64_t n) {
    const bool fine = acquire(kDeliver, true);
    if (fine) {
      forLines(linesOf(n), [&](std::uint32_t i) {
        const Line mine = op_.before(loadLine(own, i, n));
        Line sum = {};
        for (int first = 0; first < peers_.n; first += kPolls) {
          Line theirs[kPolls];
          if (!pollLines(first, i, theirs)) return false;
          TUTTI_UNROLL
          for (int u = 0; u < kPolls; ++u) {
            const int p = first + u;
            if (p >= peers_.n) break;
            Line next = theirs[u];
            if (p == peers_.self) next = mine;
            sum = p == 0 ? next : op_.combine(sum, next);
          }
        }
        sum = op_.after(sum);
        keepLine(out, i, n, sum);
        for (int distance = 1; kDeliver && distance < peers_.n; ++distance) {
          storeLine(peers_.at(distance), i, bitsOf(sum));
        }
        return true;
      });
      if (kDeliver) cleanSlots(linesOf(n));
    }
    release(kDeliver, true, fine);
  }

  template <class PartOf>
  TUTTI_DEVICE void gather(T* out, PartOf partOf, bool = false) {
    const bool fine = acquire(false, true);
    const auto lines = [&](int, const Part& part) { return linesOf(part.count); };
    if (fine) {
      forPeerLines(partOf, lines, [&](int p, const Part& part, std::uint32_t i) {
        Line value;
        if (!pollLine(p, i, value)) return false;
        keepLine(out + part.begin, i, part.count, value);
        return true;
      });
    }
    release(false, true, fine);
  }

  TUTTI_DEVICE void finish() { fifos_.finish(peers_.all()); }

 private:
  /// What one line carries, as operations see it.
  using Line = Pack<T, ll::kLinePayload>;
  static constexpr std::uint32_t kPerLine = ll::kLinePayload / sizeof(T);
  /// Peers whose lines a thread asks for at once: on a GPU each answer takes a quarter of a microsecond.
  static constexpr int kPolls = 4;

  TUTTI_DEVICE simt::Thread thread() const { return fifos_.crew().thread; }
  TUTTI_DEVICE PeerShared& shared() const { return fifos_.shared(); }
  TUTTI_DEVICE static std::uint32_t linesOf(std::uint64_t n) {
    return static_cast<std::uint32_t>(divideUp(n, kPerLine));
  }

  /// Lines to write to rank p for n elements.
  TUTTI_DEVICE std::uint32_t linesFor(int p, std::uint64_t n) const {
    return ll::cleansSlot(shared().sendStep[p]) ? slotLines_ : linesOf(n);
  }

  /// Writes what is beyond `lines` in slots that have to be written whole.
  TUTTI_DEVICE void cleanSlots(std::uint32_t lines) {
    for (int p = 0; p < peers_.n; ++p) {
      if (p == peers_.self || !ll::cleansSlot(shared().sendStep[p])) continue;
      forLines(slotLines_ - lines, [&](std::uint32_t i) {
        storeLine(p, lines + i, 0);
        return true;
      });
    }
  }

  /// Calls f for this thread's lines of 0..lines-1 until it returns false.
  template <class F>
  TUTTI_DEVICE void forLines(std::uint32_t lines, F f) {
    const simt::Group group = fifos_.crew().group;
    for (std::uint32_t i = group.rank; i < lines; i += group.size) {
      if (!f(i)) {
        fifos_.setAborted();
        return;
      }
    }
  }

  /// Calls f(p, part, i) for this thread's lines of the part of every peer p, which has lines(p, part) of them, until
  /// it returns false.
  template <class PartOf, class Lines, class F>
  TUTTI_DEVICE void forPeerLines(const PartOf& partOf, const Lines& lines, const F& f) {
    const simt::Group group = fifos_.crew().group;
    std::uint32_t most = 0;
    for (int distance = 1; distance < peers_.n; ++distance) {
      const int p = peers_.at(distance);
      const std::uint32_t n = lines(p, partOf(p));
      most = most < n ? n : most;
    }
    if (std::uint64_t{most} * static_cast<unsigned>(peers_.n - 1) <= group.size) {
      if (group.rank >= most * static_cast<unsigned>(peers_.n - 1)) return;
      const int p = peers_.at(1 + static_cast<int>(group.rank / most));
      const Part part = partOf(p);
      const std::uint32_t i = group.rank % most;
      if (i < lines(p, part) && !f(p, part, i)) fifos_.setAborted();
      return;
    }
    for (int distance = 1; distance < peers_.n; ++distance) {
      const int p = peers_.at(distance);
      const Part part = partOf(p);
      forLines(lines(p, part), [&](std::uint32_t i) { return f(p, part, i); });
    }
  }

  TUTTI_DEVICE void storeLine(int p, std::uint32_t i, std::uint64_t bits) const {
    const std::uint32_t flag = ll::flagOf(shared().sendStep[p]);
    const simt::Pack16 line{
        {ll::wordOf(static_cast<std::uint32_t>(bits), flag), ll::wordOf(static_cast<std::uint32_t>(bits >> 32), flag)}};
    thread().storeVolatile(reinterpret_cast<simt::Pack16*>(shared().to[p]) + i, line);
  }

  /// Waits for line i of rank p. false: aborted.
  TUTTI_DEVICE bool pollLine(int p, std::uint32_t i, Line& value) const {
    const auto* place = reinterpret_cast<const simt::Pack16*>(shared().from[p]) + i;
    const std::uint32_t flag = ll::flagOf(shared().recvStep[p]);
    simt::Pack16 line{};
    const bool seen = simt::spinUntil(thread(), fifos_.crew().abortWord, [&] {
      line = thread().loadVolatile(place);
      return ll::flagIn(line.word[0]) == flag && ll::flagIn(line.word[1]) == flag;
    });
    value = fromBits<Line>(ll::dataIn(line.word[0], line.word[1]));
    return seen;
  }

  /// The same for kPolls ranks from `first` on, as many of them as there are and are not this one.
  TUTTI_DEVICE bool pollLines(int first, std::uint32_t i, Line (&values)[kPolls]) const {
    const simt::Pack16* place[kPolls];
    std::uint32_t flag[kPolls];
    TUTTI_UNROLL
    for (int u = 0; u < kPolls; ++u) {
      const int p = first + u;
      const bool polled = p < peers_.n && p != peers_.self;
      place[u] = polled ? reinterpret_cast<const simt::Pack16*>(shared().from[p]) + i : nullptr;
      flag[u] = polled ? ll::flagOf(shared().recvStep[p]) : 0;
    }
    simt::Pack16 line[kPolls] = {};
    const bool seen = simt::spinUntil(thread(), fifos_.crew().abortWord, [&] {
      TUTTI_UNROLL
      for (int u = 0; u < kPolls; ++u) {
        if (place[u] != nullptr) line[u] = thread().loadVolatile(place[u]);
      }
      bool arrived = true;
      TUTTI_UNROLL
      for (int u = 0; u < kPolls; ++u) {
        arrived = arrived && (place[u] == nullptr ||
                              (ll::flagIn(line[u].word[0]) == flag[u] && ll::flagIn(line[u].word[1]) == flag[u]));
      }
      return arrived;
    });
    TUTTI_UNROLL
    for (int u = 0; u < kPolls; ++u) values[u] = fromBits<Line>(ll::dataIn(line[u].word[0], line[u].word[1]));
    return seen;
  }

  TUTTI_DEVICE static std::uint64_t bitsOf(const Line& value) { return fromBits<std::uint64_t>(value); }

  /// Elements of line i of `from`, of which there are n; zeros beyond them.
  TUTTI_DEVICE static Line loadLine(const T* from, std::uint32_t i, std::uint64_t n) {
    const std::uint64_t first = std::uint64_t{i} * kPerLine;
    if (first + kPerLine <= n && reinterpret_cast<std::uintptr_t>(from) % sizeof(Line) == 0) {
      return simt::loadData<Line>(from, i);
    }
    return loadElements<Line>(from + first, static_cast<unsigned>(smaller(kPerLine, n - first)));
  }

  TUTTI_DEVICE static void keepLine(T* to, std::uint32_t i, std::uint64_t n, const Line& value) {
    const std::uint64_t first = std::uint64_t{i} * kPerLine;
    if (first + kPerLine <= n && reinterpret_cast<std::uintptr_t>(to) % sizeof(Line) == 0) {
      return simt::storeData(to, i, value);
    }
    storeElements(to + first, static_cast<unsigned>(smaller(kPerLine, n - first)), value);
  }

  /// Slots at all peers, or of all peers, or both. Incoming ones are only located: their lines speak for themselves.
  TUTTI_DEVICE bool acquire(bool sends, bool recvs) {
    bool fine = true;
    fifos_.forOwned(peers_.all(), [&](int p) {
      if (sends) fine = fine && fifos_.waitSend(p);
      if (recvs) fifos_.locateRecv(p);
    });
    if (!fine) fifos_.setAborted();
    fifos_.sync();
    return fifos_.alive();
  }

  TUTTI_DEVICE void release(bool sends, bool recvs, bool fine) {
    fifos_.sync();
    if (!fine) return;
    fifos_.forOwned(peers_.all(), [&](int p) {
      if (recvs) fifos_.postRecv(p);
      if (sends) fifos_.advanceSend(p);
    });
  }

  Peers peers_;
  PeerFifos fifos_;
  Op op_;
  std::uint32_t slotLines_;
};

}  // namespace tutti::device
